"""A server with the resources of ../README.md: server.py PORT [HOST]"""

import asyncio
import sys

import aiocoap
from aiocoap import resource
from aiocoap.numbers.constants import TransportTuning

LARGE = bytes(48 + n % 10 for n in range(1 << 20))

# A loopback interface answers soon, and a relay that loses a tenth of all needs more patience.
TransportTuning.ACK_TIMEOUT = 0.5
TransportTuning.MAX_RETRANSMIT = 8


class Bytes(resource.Resource):
    def __init__(self, payload, after=0):
        super().__init__()
        self.payload, self.after = payload, after

    async def render_get(self, request):
        # aiocoap acknowledges after 0.1 s and sends the response in a message of its own.
        await asyncio.sleep(self.after)
        return aiocoap.Message(payload=self.payload, content_format=0)


class Echo(resource.Resource):
    async def render_put(self, request):
        return aiocoap.Message(code=aiocoap.CHANGED, payload=request.payload)

    render_post = render_put

    async def render_delete(self, request):
        return aiocoap.Message(code=aiocoap.DELETED)


class Count(resource.Resource):
    count = 0

    async def render_post(self, request):
        self.count += 1
        return aiocoap.Message(code=aiocoap.CHANGED, payload=str(self.count).encode())


class Time(resource.ObservableResource):
    def __init__(self, every, state):
        super().__init__()
        self.number, self.every, self.state = 0, every, state
        self.task = asyncio.get_running_loop().create_task(self.tick())

    async def tick(self):
        while True:
            await asyncio.sleep(self.every)
            self.number += 1
            self.updated_state()

    async def render_get(self, request):
        return aiocoap.Message(payload=self.state(self.number))


async def main():
    site = resource.Site()
    for path, what in {
        "test": Bytes(b"0123456789" * 6),
        "large": Bytes(LARGE),
        "separate": Bytes(b"that took a while", 0.5),
        "echo": Echo(),
        "count": Count(),
        "time": Time(0.2, lambda number: str(number).encode()),
        "times": Time(0.5, lambda number: str(number % 10).encode() * 3000),
    }.items():
        site.add_resource([path], what)
    site.add_resource(
        [".well-known", "core"], resource.WKCResource(site.get_resources_as_linkheader)
    )
    host = sys.argv[2] if len(sys.argv) > 2 else "127.0.0.1"
    await aiocoap.Context.create_server_context(site, bind=(host, int(sys.argv[1])))
    print("ready", flush=True)
    await asyncio.get_running_loop().create_future()


asyncio.run(main())
