"""``coaps``: DTLS with pre-shared keys."""

from __future__ import annotations

import asyncio
import logging
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import ebbtide
import pytest
from ebbtide import aio

from .test_coap import certificate

KEYS: dict[str | bytes, str | bytes] = {"device": "secret", b"\x00\xff": bytes(range(1, 17))}


def router() -> ebbtide.Router:
    made = ebbtide.Router()
    state = {"value": "0"}
    counter = made.resource("/counter", observable=True)

    @made.route("/who")
    def who(call: ebbtide.Call) -> bytes:
        return b"nobody" if call.identity is None else call.identity

    @made.route("/counter")
    def read(call: ebbtide.Call) -> str:
        return state["value"]

    @made.route("/counter", "PUT")
    def write(call: ebbtide.Call) -> None:
        state["value"] = call.text
        counter.changed()

    @made.route("/body", "POST")
    def body(call: ebbtide.Call) -> bytes:
        return call.payload[::-1]

    return made


@pytest.fixture
def base() -> Iterator[str]:
    with ebbtide.Server(router(), "coaps://127.0.0.1:0", psk=KEYS) as server:
        yield server.addresses[0]


def test_a_client_with_a_known_key_is_named_to_the_handler(base: str) -> None:
    assert base.startswith("coaps://127.0.0.1:")
    client = ebbtide.Client(identity="device", psk="secret")
    assert client.get(f"{base}/who").text == "device"
    binary = ebbtide.Client(identity=b"\x00\xff", psk=bytes(range(1, 17)))
    assert binary.get(f"{base}/who").payload == b"\x00\xff"
    long = bytes(range(256)) * 20
    assert client.post(f"{base}/body", long).payload == long[::-1]
    with ebbtide.Server(router(), "127.0.0.1:0", "coaps://127.0.0.1:0", psk=KEYS) as server:
        plain, secure = server.addresses
        assert ebbtide.get(f"{plain}/who").text == "nobody"
        assert client.get(f"{secure}/who").text == "device"


def test_a_wrong_key_and_an_unknown_identity_are_refused(base: str) -> None:
    for identity, psk in (("device", "guess"), ("stranger", "secret")):
        with pytest.raises(ebbtide.ConnectionLost):
            ebbtide.Client(identity=identity, psk=psk).get(f"{base}/who", timeout=20)
    with pytest.raises(ebbtide.ConnectionLost):
        ebbtide.Client().get(f"{base}/who", timeout=20)


def test_certificates_do_instead_of_keys() -> None:
    (chain, key), (own, own_key) = certificate(), certificate()
    # With keys for some clients and certificates for others.
    with ebbtide.Server(
        router(), "coaps://127.0.0.1:0", psk=KEYS, certificate=chain, key=key
    ) as server:
        (base,) = server.addresses
        assert ebbtide.Client(ca=chain).get(f"{base}/who").text == "nobody"
        assert ebbtide.Client(identity="device", psk="secret").get(f"{base}/who").text == "device"
        with pytest.raises(ebbtide.ConnectionLost):
            ebbtide.Client(ca=own).get(f"{base}/who", timeout=20)
    with ebbtide.Server(
        router(), "coaps://127.0.0.1:0", certificate=chain, key=key, ca=own
    ) as server:
        (base,) = server.addresses
        known = ebbtide.Client(ca=chain, certificate=own, key=own_key)
        assert known.get(f"{base}/who").is_success
        with pytest.raises(ConnectionError):
            ebbtide.Client(ca=chain).get(f"{base}/who", timeout=20)


def raw_key(folder: Path, name: str) -> tuple[str, str]:
    """Return a private key and its public key, as PEM."""
    file = folder / name
    curve = ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]
    subprocess.run(["openssl", "genpkey", *curve, "-out", file], check=True)
    shown = subprocess.run(
        ["openssl", "pkey", "-in", file, "-pubout"], check=True, capture_output=True
    )
    return file.read_text(), shown.stdout.decode()


def test_raw_public_keys_do_instead_of_certificates(tmp_path: Path) -> None:
    (own, public), (device, of_device), (_, other) = (raw_key(tmp_path, name) for name in "abc")
    with ebbtide.Server(
        router(), "coaps://127.0.0.1:0", raw_key=own, peer_keys=of_device
    ) as server:
        uri = f"{server.addresses[0]}/who"
        known = ebbtide.Client(raw_key=device, peer_keys=public)
        assert known.get(uri).text.startswith("ni:///sha-256;")
        for client in (
            ebbtide.Client(raw_key=device, peer_keys=other),
            ebbtide.Client(peer_keys=public),
        ):
            with pytest.raises(ConnectionError, match=r"not trusted|unsupported_certificate"):
                client.get(uri, timeout=20)


def test_a_function_looks_up_keys_and_may_fail(caplog: pytest.LogCaptureFixture) -> None:
    asked: list[bytes] = []

    def keys(identity: bytes) -> str | None:
        asked.append(identity)
        if identity == b"broken":
            raise LookupError("the database is gone")
        return "secret" if identity == b"device" else None

    with ebbtide.Server(router(), "coaps://127.0.0.1:0", psk=keys) as server:
        (base,) = server.addresses
        client = ebbtide.Client(identity="device", psk="secret")
        assert client.get(f"{base}/who").text == "device"
        assert asked == [b"device"]
        with (
            caplog.at_level(logging.ERROR, logger="ebbtide"),
            pytest.raises(ebbtide.ConnectionLost),
        ):
            ebbtide.Client(identity="broken", psk="secret").get(f"{base}/who", timeout=20)
        assert "the database is gone" in caplog.text
        # The server goes on.
        assert client.get(f"{base}/who").text == "device"


def test_looking_up_a_key_while_observers_are_told_does_not_stop_the_server() -> None:
    """The function waits for the interpreter while its socket is locked."""
    made = router()
    resource = made.resource("/counter")

    def keys(identity: bytes) -> str:
        time.sleep(0.002)
        return "secret"

    with ebbtide.Server(made, "coaps://127.0.0.1:0", psk=keys) as server:
        (base,) = server.addresses
        ended = threading.Event()

        def tell() -> None:
            while not ended.is_set():
                resource.changed()
                assert resource.subject is not None
                assert resource.subject.observers <= 1

        thread = threading.Thread(target=tell, daemon=True)
        thread.start()
        with ebbtide.Client(identity="first", psk="secret").observe(f"{base}/counter") as states:
            assert next(states).text == "0"
            for number in range(20):
                client = ebbtide.Client(identity=f"device-{number}", psk="secret")
                assert client.get(f"{base}/who", timeout=20).text == f"device-{number}"
        ended.set()
        thread.join(10)
        assert not thread.is_alive()


@pytest.mark.parametrize("cid", [True, False, 0, 4, 8])
def test_connection_ids_are_of_the_length_that_is_asked_for(cid: bool | int) -> None:
    with ebbtide.Server(router(), "coaps://127.0.0.1:0", psk=KEYS, cid=cid) as server:
        (base,) = server.addresses
        for own in (True, cid):
            client = ebbtide.Client(identity="device", psk="secret", cid=own)
            assert client.get(f"{base}/who").text == "device"


def test_coroutines_ask_and_observe_over_one_session(base: str) -> None:
    async def main() -> None:
        client = aio.Client(nstart=16, identity="device", psk="secret")
        answers = await asyncio.gather(*(client.get(f"{base}/who") for _ in range(50)))
        assert {answer.text for answer in answers} == {"device"}
        async with client.observe(f"{base}/counter") as states:
            assert (await anext(states)).text == "0"
            await client.put(f"{base}/counter", "7")
            assert (await anext(states)).text == "7"
        async with aio.Server(router(), "coaps://127.0.0.1:0", psk=KEYS) as server:
            assert (await client.get(f"{server.addresses[0]}/who")).text == "device"

    asyncio.run(main())


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (lambda: ebbtide.Client(identity="x"), ValueError, "psk: identity and psk belong together"),
        (lambda: ebbtide.Client(psk="x"), ValueError, "identity: identity and psk belong together"),
        (lambda: ebbtide.Client(identity="x", psk=""), ValueError, "psk: a key has 1 to 64"),
        (lambda: ebbtide.Client(identity="x", psk=b"k" * 65), ValueError, "to 64 bytes, not 65"),
        (lambda: ebbtide.Client(identity=3, psk="x"), TypeError, "identity: takes bytes or text"),  # type: ignore[arg-type]
        (lambda: ebbtide.Client(cid=9), ValueError, "cid: takes True, False, or a length"),
        (lambda: ebbtide.Client(cid="no"), ValueError, "cid: takes True, False, or a length"),  # type: ignore[arg-type]
        (lambda: ebbtide.Client(control=ebbtide.Control), TypeError, "in the testbed only"),  # type: ignore[arg-type]
        (lambda: ebbtide.Client(raw_key="x"), ValueError, "raw_key: peer_keys, .* belongs to it"),
        (lambda: ebbtide.Client(peer_keys="x"), ValueError, "peer_keys: no public key"),
        (lambda: ebbtide.Client(peer_keys="x", ca="y"), ValueError, "the place of certificates"),
        (
            lambda: ebbtide.Server(
                router(), "coaps://127.0.0.1:0", psk=KEYS, peer_keys=f"ni:///sha-256;{'A' * 43}"
            ),
            ValueError,
            "peer_keys: raw_key, .* belongs to it",
        ),
        (
            lambda: ebbtide.Server(router(), "coaps://127.0.0.1:0"),
            ValueError,
            "coaps needs psk, .* or certificate",
        ),
        (lambda: ebbtide.Server(router(), "coaps://127.0.0.1:0", psk=3), TypeError, "psk: takes a"),
        (lambda: ebbtide.Server(router(), "coaps://127.0.0.1:0", psk={"x": 3}), TypeError, "psk"),
        (lambda: ebbtide.Server(router(), "cops://127.0.0.1:0"), ValueError, "'cops' is not one"),
    ],
)
def test_an_invalid_key_is_refused_by_name(
    make: Callable[[], object], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        make()


@pytest.fixture
def libcoap() -> str:
    found = shutil.which("coap-client-openssl") or shutil.which("coap-client-gnutls")
    if found is None:
        pytest.skip("no coap-client-openssl or coap-client-gnutls")
    return found


def test_the_client_of_libcoap_is_served(libcoap: str, base: str) -> None:
    command = [libcoap, "-B", "10", "-u", "device", "-k", "secret", f"{base}/who"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert done.stdout.strip() == "device", done.stderr


def test_the_server_of_libcoap_is_asked(tmp_path: Path) -> None:
    program = shutil.which("coap-server-openssl") or shutil.which("coap-server-gnutls")
    if program is None:
        pytest.skip("no coap-server-openssl or coap-server-gnutls")
    import socket

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # It serves coaps at the port after the one for coap.
    command = [program, "-A", "127.0.0.1", "-p", str(port - 1), "-k", "secret"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        client = ebbtide.Client(identity="device", psk="secret")
        until = time.monotonic() + 10
        while True:
            try:
                answer = client.get(f"coaps://127.0.0.1:{port}/", timeout=5)
                break
            except (ConnectionError, TimeoutError):
                assert time.monotonic() < until
                time.sleep(0.1)
        assert "libcoap" in answer.text
    finally:
        server.kill()
        server.wait()
