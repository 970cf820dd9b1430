"""Asks a server with the resources of `ebbtide serve` for everything: client.py PORT"""

import asyncio
import sys

from aiocoap import Code, Context, Message

BASE = f"coap://127.0.0.1:{sys.argv[1]}"


async def main():
    context = await Context.create_client_context()

    async def ask(code, path, payload=b""):
        response = await context.request(
            Message(code=code, uri=BASE + path, payload=payload)).response
        return response.code, response.payload

    digits = b"0123456789" * 6
    assert await ask(Code.GET, "/test") == (Code.CONTENT, digits)
    large = bytes(48 + n % 10 for n in range(1 << 20))
    assert await ask(Code.GET, "/large") == (Code.CONTENT, large)
    for method in Code.PUT, Code.POST:
        assert await ask(method, "/echo", b"hi") == (Code.CHANGED, b"hi")
    assert await ask(Code.PUT, "/echo", large) == (Code.CHANGED, large)
    assert (await ask(Code.GET, "/separate"))[0] == Code.CONTENT
    assert (await ask(Code.GET, "/missing"))[0] == Code.NOT_FOUND
    assert (await ask(Code.DELETE, "/test"))[0] == Code.METHOD_NOT_ALLOWED

    observed = context.request(Message(code=Code.GET, uri=BASE + "/time", observe=0))
    states = [(await observed.response).payload]
    async for state in observed.observation:
        states.append(state.payload)
        if len(states) == 3:
            break
    # A second may hold two states: registering and the first change.
    assert states == sorted(states) and states[0] < states[-1], states
    print("all answered")
    await context.shutdown()


asyncio.run(asyncio.wait_for(main(), 50))
