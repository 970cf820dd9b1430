"""OSCORE: messages that are protected end to end."""

from __future__ import annotations

import asyncio
import gc
import os
from pathlib import Path

import ebbtide
import pytest
from ebbtide import OscoreContext, aio

from .test_dtls import router

SECRET = b"sixteen bytes 16"


def of_client(secret: bytes = SECRET) -> OscoreContext:
    return OscoreContext(secret, b"c", b"s")


def of_server() -> OscoreContext:
    return OscoreContext(SECRET, b"s", b"c", name="lamp")


def test_a_handler_knows_the_client_over_every_transport() -> None:
    addresses = ("127.0.0.1:0", "coap+tcp://127.0.0.1:0", "coap+ws://127.0.0.1:0")
    client = ebbtide.Client(oscore=of_client())
    with ebbtide.Server(router(), *addresses, oscore=of_server(), oscore_required=True) as server:
        for base in server.addresses:
            assert client.get(f"{base}/who").text == "lamp"
            long = bytes(range(256)) * 20
            assert client.post(f"{base}/body", long).payload == long[::-1]
            assert ebbtide.get(f"{base}/who").code == "4.01"


def test_observations_are_protected_in_a_loop() -> None:
    async def watch() -> None:
        async with aio.Server(router(), "127.0.0.1:0", oscore=[of_server()]) as server:
            base = server.addresses[0]
            client = aio.Client(oscore=[of_client()])
            states = client.observe(f"{base}/counter")
            assert (await anext(states)).text == "0"
            await client.put(f"{base}/counter", "1")
            assert (await anext(states)).text == "1"

    asyncio.run(asyncio.wait_for(watch(), 60))


def test_sequence_numbers_are_kept_in_a_file_of_one_program(tmp_path: Path) -> None:
    context = OscoreContext(SECRET, b"c", b"s", state=tmp_path / "numbers")
    first = ebbtide.Client(oscore=context)
    with pytest.raises(ValueError, match=r"oscore\[0\]: another program uses the security context"):
        ebbtide.Client(oscore=context)
    with ebbtide.Server(router(), "127.0.0.1:0", oscore=of_server()) as server:
        assert first.get(f"{server.addresses[0]}/who").text == "lamp"


def test_both_sides_make_new_keys_of_an_old_secret_at_each_start() -> None:
    for _ in range(2):
        ours = OscoreContext(SECRET, b"s", b"c", name="lamp", renewed=True)
        with ebbtide.Server(router(), "127.0.0.1:0", oscore=ours, oscore_required=True) as server:
            for _ in range(2):
                client = ebbtide.Client(oscore=OscoreContext(SECRET, b"c", b"s", renewed=True))
                assert client.get(f"{server.addresses[0]}/who").text == "lamp"


def test_what_is_wrong_is_named_and_no_secret_is_shown() -> None:
    for context, expected in (
        (OscoreContext(b"", b"c", b"s"), "the master secret is empty"),
        (OscoreContext(SECRET, b"c", b"c"), "sender ID and recipient ID are the same"),
        (OscoreContext(SECRET, b"c", b"12345678"), "the ID has more than 7 bytes"),
        (OscoreContext(SECRET, b"c", b"s", algorithm="ROT13"), "algorithm: takes AES-CCM"),
    ):
        with pytest.raises(ValueError, match=expected) as caught:
            ebbtide.Client(oscore=[context])
        assert "oscore[0]" in str(caught.value)
    with pytest.raises(ValueError, match="server: takes a host"):
        ebbtide.Client(oscore=OscoreContext(SECRET, b"c", b"s", server=":1"))
    with pytest.raises(ValueError, match="renewed: such a context has no state"):
        ebbtide.Client(oscore=OscoreContext(SECRET, b"c", b"s", state="numbers", renewed=True))
    assert "sixteen" not in repr(of_client())


def test_a_client_with_another_key_learns_why_it_is_refused() -> None:
    stranger = ebbtide.Client(oscore=of_client(b"another"))
    with (
        ebbtide.Server(router(), "127.0.0.1:0", oscore=of_server()) as server,
        pytest.raises(ebbtide.EbbtideError, match="Decryption failed"),
    ):
        stranger.get(f"{server.addresses[0]}/who")


def test_a_forked_process_does_not_use_the_numbers_again() -> None:
    client = ebbtide.Client(oscore=of_client())
    child = os.fork()
    if child == 0:
        try:
            client.get("coap://127.0.0.1:9/who")
        except RuntimeError as error:
            os._exit(0 if "after a fork" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_forked_process_that_drops_a_client_leaves_its_state_locked(tmp_path: Path) -> None:
    context = OscoreContext(SECRET, b"c", b"s", state=tmp_path / "state")
    client = ebbtide.Client(oscore=context)
    child = os.fork()
    if child == 0:
        del client
        gc.collect()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with pytest.raises(ValueError, match="another program uses the security context"):
        ebbtide.Client(oscore=context)
    del client
