"""Measures the asyncio client beside aiocoap: the same server, the same machine, in turn.

    python clients.py [SECONDS]

Prints requests a second, one after the other and with 64 in flight, and the ratios: medians of five
rounds. The server is a process of its own and answers ``/.well-known/core`` without Python.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import aiocoap
import aiocoap.numbers.constants
from ebbtide import aio

SERVER = """
import sys, ebbtide
router = ebbtide.Router()
router.route("/x")(lambda call: b"x")
with ebbtide.Server(router, "127.0.0.1:0") as server:
    print(server.addresses[0], flush=True)
    sys.stdin.read()
"""
IN_FLIGHT = 64
ROUNDS = 5

Ask = Callable[[], Awaitable[Any]]


async def rate(ask: Ask, in_flight: int, seconds: float) -> float:
    """Give requests a second."""
    until = time.perf_counter() + seconds
    began = time.perf_counter()
    count = 0

    async def go_on() -> None:
        nonlocal count
        while time.perf_counter() < until:
            await ask()
            count += 1

    await asyncio.gather(*(go_on() for _ in range(in_flight)))
    return count / (time.perf_counter() - began)


async def main(seconds: float) -> None:
    """Measure both in turn."""
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    uri = server.stdout.readline().strip() + "/.well-known/core"
    # NSTART is 1 in aiocoap as well; without this it would wait for itself.
    aiocoap.numbers.constants.TransportTuning.NSTART = IN_FLIGHT
    theirs = await aiocoap.Context.create_client_context()

    async def ask_theirs() -> Any:
        return await theirs.request(aiocoap.Message(code=aiocoap.GET, uri=uri)).response

    assert (await aio.Client().get(uri)).payload == (await ask_theirs()).payload
    rates: dict[tuple[str, int], list[float]] = {}
    for _ in range(ROUNDS):
        for in_flight in (1, IN_FLIGHT):
            # A new one: to one peer a client sends at most 65536 messages in EXCHANGE_LIFETIME, so
            # that their IDs stay different (RFC 7252 section 4.4).
            ours = aio.Client(nstart=IN_FLIGHT)
            asks: list[tuple[str, Ask]] = [
                ("ebbtide", partial(ours.get, uri)),
                ("aiocoap", ask_theirs),
            ]
            for name, ask in asks:
                measured = await rate(ask, in_flight, seconds)
                rates.setdefault((name, in_flight), []).append(measured)
    for in_flight in (1, IN_FLIGHT):
        mine, other = (statistics.median(rates[name, in_flight]) for name in ("ebbtide", "aiocoap"))
        print(
            f"{in_flight:3} in flight: {mine:8.0f}/s, aiocoap {other:7.0f}/s, {mine / other:.1f} x"
        )
    await theirs.shutdown()
    server.terminate()


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0))
