#!/usr/bin/env python3
"""Many requests at once through a gateway to many devices.

    gateway_load.py http|coap GATEWAY:PORT COUNT DEVICES SECONDS

HTTP_PREFIX is the path before the URI, by default /hc/.

Prints one JSON object: how many were answered, refused, late or lost, and the times of the answers.
"""
import asyncio
import json
import os
import random
import resource
import struct
import sys
import time

mode, gateway, count, devices, deadline = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5])
host, port = gateway.rsplit(":", 1)
port = int(port)
prefix = os.environ.get("HTTP_PREFIX", "/hc/")
began = time.monotonic()
results = {}


def device(n):
    d = n % devices
    return f"10.83.{1 + (d + 1) // 256}.{(d + 1) % 256}"


def note(what, at):
    results.setdefault(what, []).append(at - began)


async def http(n):
    try:
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(f"GET {prefix}coap://{device(n)}/test?n={n} HTTP/1.1\r\nHost: g\r\nConnection: close\r\nPrefer: wait={int(deadline)}\r\n\r\n".encode())
        # Some gateways reset the connection after an answer.
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), deadline + 10)
        note(head.split(b" ")[1].decode(), time.monotonic())
        writer.close()
    except (OSError, EOFError, asyncio.TimeoutError) as error:
        note(type(error).__name__, time.monotonic())


class Coap(asyncio.DatagramProtocol):
    """A client of RFC 7252 with one request."""
    def __init__(self, n):
        self.mid = random.randrange(65536)
        token = os.urandom(4)
        options, last = b"", 0
        for number, value in ((3, device(n)), (11, "test"), (15, f"n={n}"), (39, "coap")):
            delta, last = number - last, number
            value = value.encode()
            assert len(value) < 13
            options += (bytes([delta << 4 | len(value)]) if delta < 13 else bytes([0xd0 | len(value), delta - 13])) + value
        self.message = struct.pack("!BBH", 0x44, 1, self.mid) + token + options
        self.done = asyncio.get_running_loop().create_future()
        self.acknowledged = False
    def connection_made(self, transport):
        self.transport = transport
    def datagram_received(self, data, _):
        if len(data) < 4:
            return
        kind, code, mid = (data[0] >> 4) & 3, data[1], struct.unpack("!H", data[2:4])[0]
        if kind == 2 and mid == self.mid:
            self.acknowledged = True
        if kind == 0:
            self.transport.sendto(struct.pack("!BBH", 0x60, 0, mid))
        if code and not self.done.done():
            self.done.set_result(f"{code >> 5}.{code & 31:02}")
    def error_received(self, _):
        pass


async def coap(n):
    loop = asyncio.get_running_loop()
    transport, client = await loop.create_datagram_endpoint(lambda: Coap(n), remote_addr=(host, port))
    span, until, tries = random.uniform(2, 3), time.monotonic() + deadline, 0
    while not client.done.done() and time.monotonic() < until:
        if not client.acknowledged and tries < 5:
            transport.sendto(client.message)
            tries += 1
        await asyncio.wait([client.done], timeout=min(span, max(0.01, until - time.monotonic())))
        span *= 2
    note(client.done.result() if client.done.done() else "none", time.monotonic())
    transport.close()


async def main():
    one = http if mode == "http" else coap
    work = []
    for n in range(count):
        work.append(asyncio.create_task(one(n)))
        if n % 200 == 199:
            await asyncio.sleep(0.02)
    await asyncio.wait(work)
    shown = {what: {"count": len(at), "median_s": round(sorted(at)[len(at) // 2], 2), "last_s": round(max(at), 2)} for what, at in sorted(results.items())}
    print(json.dumps({"mode": mode, "count": count, "devices": devices, "results": shown}), flush=True)

resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
asyncio.run(main())
