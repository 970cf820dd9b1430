"""What a client asks of a server with the resources of ../README.md: client.py BASE [count|lossy]"""

import asyncio
import sys

from aiocoap import Code, Context, Message, NON
from aiocoap.numbers.constants import TransportTuning
from aiocoap.optiontypes import OpaqueOption, UintOption
from aiocoap.numbers.optionnumbers import OptionNumber

BASE, WHAT = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "all"
DIGITS = b"0123456789" * 6
LARGE = bytes(48 + n % 10 for n in range(1 << 20))
MEDIUM = LARGE[:10_000]
CRITICAL, NO_RESPONSE, HOP_LIMIT = OptionNumber(65001), OptionNumber(258), OptionNumber(16)

# A loopback interface answers soon, and a relay that loses a tenth of all needs more patience.
TransportTuning.ACK_TIMEOUT = 0.5
TransportTuning.MAX_RETRANSMIT = 8


class Client:
    def __init__(self, context):
        self.context = context

    def send(self, code, path, payload=b"", options=(), **more):
        message = Message(code=code, uri=BASE + path, payload=payload, **more)
        for option in options:
            message.opt.add_option(option)
        return self.context.request(message)

    async def ask(self, *args, **more):
        response = await self.send(*args, **more).response
        return response.code, response.payload

    async def count(self, times):
        """Each POST is counted once, however often its datagrams come."""
        counted = [int((await self.ask(Code.POST, "/count"))[1]) for _ in range(times)]
        assert counted == list(range(counted[0], counted[0] + times)), counted

    async def observe(self, path, right):
        request = self.send(Code.GET, path, observe=0)
        states = [(await request.response).payload]
        async for state in request.observation:
            states.append(state.payload)
            if len(states) == 3:
                break
        request.observation.cancel()
        assert all(map(right, states)) and len(set(states)) > 1, [state[:20] for state in states]

    async def all(self):
        assert await self.ask(Code.GET, "/test") == (Code.CONTENT, DIGITS)
        assert b"</time>" in (await self.ask(Code.GET, "/.well-known/core"))[1]
        for method in Code.PUT, Code.POST:
            assert await self.ask(method, "/echo", b"hi") == (Code.CHANGED, b"hi")
        assert (await self.ask(Code.DELETE, "/echo"))[0] == Code.DELETED
        assert (await self.ask(Code.GET, "/separate"))[0] == Code.CONTENT
        assert await self.ask(Code.GET, "/large") == (Code.CONTENT, LARGE)
        assert await self.ask(Code.PUT, "/echo", LARGE) == (Code.CHANGED, LARGE)
        assert (await self.ask(Code.GET, "/missing"))[0] == Code.NOT_FOUND
        assert (await self.ask(Code.DELETE, "/test"))[0] == Code.METHOD_NOT_ALLOWED
        assert (await self.ask(Code.PUT, "/echo", LARGE * 3))[0] == Code.REQUEST_ENTITY_TOO_LARGE
        unknown = OpaqueOption(CRITICAL, b"x")
        assert (await self.ask(Code.GET, "/test", options=[unknown]))[0] == Code.BAD_OPTION
        hops = UintOption(HOP_LIMIT, 3)
        assert await self.ask(Code.GET, "/test", options=[hops]) == (Code.CONTENT, DIGITS)
        if BASE.startswith("coap://"):  # over connections aiocoap leaves No-Response out
            silent = self.send(Code.GET, "/test", options=[UintOption(NO_RESPONSE, 2)], mtype=NON)
            try:
                response = await asyncio.wait_for(silent.response, 0.5)
                assert False, f"it wanted no response: {response}"
            except asyncio.TimeoutError:
                pass
        await self.observe("/time", bytes.isdigit)
        await self.observe("/times", lambda state: len(state) == 3000 and len(set(state)) == 1)

    async def lossy(self):
        await self.count(12)
        for _ in range(5):
            assert await self.ask(Code.GET, "/test") == (Code.CONTENT, DIGITS)
        assert await self.ask(Code.PUT, "/echo", MEDIUM) == (Code.CHANGED, MEDIUM)
        assert (await self.ask(Code.GET, "/separate"))[0] == Code.CONTENT


async def main():
    context = await Context.create_client_context()
    client = Client(context)
    await {"all": client.all, "lossy": client.lossy, "count": lambda: client.count(10)}[WHAT]()
    # aiocoap ends an observation by a Reset of the next notification, which comes within half a second.
    await asyncio.sleep(1.5)
    await context.shutdown()
    print("all answered")


asyncio.run(asyncio.wait_for(main(), 120))
