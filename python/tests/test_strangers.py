"""What strangers send to a server in Python, and what it costs those who are honest."""

from __future__ import annotations

import asyncio
import contextlib
import random
import resource
import socket
import struct
import sys
from pathlib import Path

import ebbtide
import pytest

SLOW = 3000


def get(number: int, path: bytes) -> bytes:
    """A Confirmable GET with a token (RFC 7252 section 3)."""
    head = struct.pack("!BBHI", 0x44, 1, number & 0xFFFF, number)
    return head + bytes([0xB0 | len(path)]) + path


@pytest.mark.skipif(
    sys.platform != "linux", reason="127.0.0.2 is an address of its own on Linux only"
)
def test_junk_and_slow_handlers_kept_at_work_neither_stop_a_server_nor_fill_its_memory(
    tmp_path: Path,
) -> None:
    router, working, over = ebbtide.Router(), [0], asyncio.Event()

    @router.route("/slow")
    async def slow(call: ebbtide.Call) -> str:
        working[0] += 1
        await over.wait()
        return "late"

    @router.route("/broken")
    def broken(call: ebbtide.Call) -> str:
        raise RuntimeError("on purpose")

    @router.route("/end", "POST")
    async def end(call: ebbtide.Call) -> None:
        over.set()

    @router.route("/quick")
    def quick(call: ebbtide.Call) -> str:
        return "here"

    state = tmp_path / "state"
    chance = random.Random(30)
    with ebbtide.Server(router, "127.0.0.1:0", state=state) as server:
        base = server.addresses[0]
        to = ("127.0.0.1", int(base.rpartition(":")[2]))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.bind(("127.0.0.2", 0))
            stranger.setblocking(False)
            client = ebbtide.Client()
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            for number in range(SLOW):
                junk = bytearray(get(number, b"quick"))
                junk[chance.randrange(len(junk))] ^= 1 << chance.randrange(8)
                for datagram in (
                    get(number, b"slow"),
                    get(SLOW + number, b"broken"),
                    bytes(junk),
                    chance.randbytes(chance.randrange(64)),
                ):
                    with contextlib.suppress(BlockingIOError):
                        stranger.sendto(datagram, to)
                with contextlib.suppress(BlockingIOError):
                    while True:
                        stranger.recv(2048)
                if number % 100 == 0:
                    assert client.get(f"{base}/quick").text == "here"
            grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
            # A task of asyncio and a request of the server take some 10 KB.
            assert grown < 100_000, f"{grown} KB"
            assert working[0] > SLOW // 2
        client.post(f"{base}/end")
    assert state.stat().st_mode & 0o777 == 0o600
