"""The resources of `ebbtide serve`, by aiocoap: server.py PORT"""

import asyncio
import sys

import aiocoap
from aiocoap import resource


class Test(resource.Resource):
    async def render_get(self, request):
        return aiocoap.Message(payload=b"0123456789" * 6, content_format=0)


class Large(resource.Resource):
    async def render_get(self, request):
        return aiocoap.Message(payload=bytes(48 + n % 10 for n in range(1 << 20)))


class Separate(resource.Resource):
    async def render_get(self, request):
        await asyncio.sleep(2)
        return aiocoap.Message(payload=b"that took two seconds")


class Echo(resource.Resource):
    async def render_put(self, request):
        return aiocoap.Message(code=aiocoap.CHANGED, payload=request.payload)

    render_post = render_put

    async def render_delete(self, request):
        return aiocoap.Message(code=aiocoap.DELETED)


class Time(resource.ObservableResource):
    def __init__(self):
        super().__init__()
        self.number = 0
        self.task = asyncio.get_running_loop().create_task(self.tick())

    async def tick(self):
        while True:
            await asyncio.sleep(0.5)
            self.number += 1
            self.updated_state()

    async def render_get(self, request):
        return aiocoap.Message(payload=str(self.number).encode())


async def main():
    site = resource.Site()
    for path, what in [("test", Test()), ("large", Large()), ("separate", Separate()),
                       ("echo", Echo()), ("time", Time())]:
        site.add_resource([path], what)
    await aiocoap.Context.create_server_context(site, bind=("127.0.0.1", int(sys.argv[1])))
    print("ready", flush=True)
    await asyncio.get_running_loop().create_future()


asyncio.run(main())
