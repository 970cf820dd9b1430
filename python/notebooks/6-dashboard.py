# %% [markdown]
# # Live sensors, by the asyncio client
#
# A server with three sensors, observed: each state arrives as it changes (RFC 7641). The server is in the same program here; it may
# be any CoAP server.

# %%
import asyncio
import math
import time

import ebbtide
from ebbtide import aio

router = ebbtide.Router()
readings = {"kitchen": 21.0, "hall": 18.0, "garden": 9.0}
resources = {}


def sensor(room):
    resources[room] = router.resource(
        f"/{room}/temperature", observable=True, attributes={"rt": "temperature"}
    )

    @router.route(f"/{room}/temperature")
    def read(call):
        return ebbtide.reply(f"{readings[room]:.2f}", format=0, max_age=5)


for room in readings:
    sensor(room)

# %% [markdown]
# The dashboard: one task per sensor.

# %%
seen = []


async def watch(client, base, room, began):
    async with client.observe(f"{base}/{room}/temperature") as states:
        async for state in states:
            seen.append((time.monotonic() - began, room, float(state.text)))


async def weather():
    for step in range(30):
        for index, room in enumerate(readings):
            readings[room] += 0.4 * math.sin(step / 4 + index)
            resources[room].changed()
        await asyncio.sleep(0.05)


async def main():
    async with aio.Server(router, "127.0.0.1:0") as server:
        (base,) = server.addresses
        client = aio.Client()
        print((await client.get(f"{base}/.well-known/core")).text)
        began = time.monotonic()
        watching = [asyncio.create_task(watch(client, base, room, began)) for room in readings]
        await weather()
        for task in watching:
            task.cancel()


asyncio.run(main())
print({room: round(reading, 1) for room, reading in readings.items()})

# %%
from matplotlib import pyplot

figure, axis = pyplot.subplots(figsize=(6.4, 3.2), layout="constrained")
for room in readings:
    own = [(at, value) for at, name, value in seen if name == room]
    axis.step(*zip(*own, strict=True), where="post", label=room)
axis.set(xlabel="time (s)", ylabel="temperature (°C)")
axis.legend(frameon=False)
