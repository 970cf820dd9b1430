#!/usr/bin/env python3
"""Ten thousand hostile connections: what they make a server hold, and what they cost honest clients.

In two network namespaces (network.py): `ebbtide serve` over UDP, TCP and WebSocket runs in
the one, on the first core; the connections, of 64 addresses, and an honest client run in the other. The kinds:

    never-reading   asks for long answers, many at a time, and takes none of them
    half-sent       a message of 64 kB, of which half comes
    slow            a byte of a message a second
    handshake       a byte of a WebSocket's handshake a second

For each kind the honest client asks over UDP and over TCP, one request after the other, before the
connections come (the control) and while they are there. Memory is the server's resident set: at its peak,
and 10 s after the connections' end, over what it was before.

    cargo build --release -p ebbtide-cli
    interop/attack/connections.py
"""

import argparse
import contextlib
import json
import os
import pathlib
import resource
import selectors
import socket
import statistics
import subprocess
import sys
import time

import network

CSM = b"\x00\xe1"
HOSTS = 64


def request(path):
    """A GET over TCP (RFC 8323 section 3.2), without a token."""
    option = bytes([0xB0 | len(path)]) + path
    return bytes([len(option) << 4, 0x01]) + option


# The length 64,000 is in two bytes, less 269 (RFC 8323 section 3.2).
MESSAGE = b"\xe0" + (64_000 - 269).to_bytes(2, "big") + b"\x02\xb4echo\xff"
KINDS = {
    "never-reading": (5683, CSM + 64 * request(b"large"), b""),
    "half-sent": (5683, CSM + MESSAGE + bytes(32_000), b""),
    "slow": (5683, CSM + MESSAGE, b"x"),
    "handshake": (8080, b"GET /.well-known/coap HTTP/1.1\r\nX: ", b"x"),
}


def hostile(kind, count, seconds):
    """Runs within the clients' namespace: says how many connections there are, holds them, and says again."""
    port, first, later = KINDS[kind]
    soft = min(count + 100, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    selector, held, refused = selectors.DefaultSelector(), [], 0

    def pump(timeout):
        """Sends the first bytes of connections that are established; forgets those that ended."""
        for key, _ in selector.select(timeout):
            with contextlib.suppress(BlockingIOError):
                try:
                    sent = key.fileobj.send(key.data[:16_384])
                except OSError:
                    sent = len(key.data)
                rest = key.data[sent:]
                if rest:
                    selector.modify(key.fileobj, selectors.EVENT_WRITE, rest)
                else:
                    selector.unregister(key.fileobj)

    for number in range(count):
        connection = socket.socket()
        # Little room, so that what the peer does not read stays at the server.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.setblocking(False)
        connection.bind((f"10.0.0.{1 + number % HOSTS}", 0))
        with contextlib.suppress(BlockingIOError):
            try:
                connection.connect((network.SERVER, port))
            except BlockingIOError:
                raise
            except OSError:
                refused += 1
                continue
        held.append(connection)
        selector.register(connection, selectors.EVENT_WRITE, first)
        pump(0)
        while len(selector.get_map()) > 200:
            pump(0.01)
    end = time.monotonic() + 10
    while selector.get_map() and time.monotonic() < end:
        pump(0.1)
    print(len(held), flush=True)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for connection in held if later else ():
            with contextlib.suppress(OSError):
                connection.send(later)
        time.sleep(1)
    alive = 0
    for connection in held:
        with contextlib.suppress(OSError):
            # A Reset says so here; an end that was not read does not.
            alive += connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0 and is_open(connection)
    print(alive, flush=True)


def is_open(connection):
    """Whether the server has not ended the connection: TCP_INFO's first byte is the state, 1 is ESTABLISHED."""
    return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 8)[0] == 1


def honest(spaces, options):
    """Requests a second over UDP and over TCP."""
    core = ["taskset", "-c", "1"] if os.cpu_count() > 1 else []
    rates = []
    for uri in (f"coap://{network.SERVER}/test", f"coap+tcp://{network.SERVER}/test"):
        bench = subprocess.run(
            spaces.inside(spaces.client, *core, options.ebbtide, "bench", uri, "--duration",
                          str(options.seconds), "--json"), capture_output=True, text=True, timeout=120)
        rates.append(json.loads(bench.stdout)["per_second"] if bench.stdout else 0)
    return rates


def row(kind, options):
    with contextlib.ExitStack() as stack:
        spaces = network.Namespaces(stack)
        server = network.serve(stack, spaces, options, ["--bind", f"coap+tcp://{network.SERVER}:5683", "--bind",
                                                       f"coap+ws://{network.SERVER}:8080"])
        resident = lambda: network.memory(server.pid, "VmRSS")
        honest(spaces, options)
        before, ratios = resident(), []
        control = [honest(spaces, options) for _ in range(options.rounds)]
        span = options.rounds * 2 * (options.seconds + 2)
        attack = stack.enter_context(subprocess.Popen(
            spaces.inside(spaces.client, sys.executable, __file__, "--hostile", kind, "--connections",
                          str(options.connections), "--seconds", str(span)), stdout=subprocess.PIPE, text=True))
        opened = int(attack.stdout.readline())
        during = [honest(spaces, options) for _ in range(options.rounds)]
        ratios = [statistics.median(d[way] for d in during) / max(statistics.median(c[way] for c in control), 1e-9)
                  for way in range(2)]
        left = int(attack.stdout.readline())
        attack.wait(timeout=60)
        time.sleep(10)
        after = resident()
        alive = server.poll() is None
        peak = network.memory(server.pid, "VmHWM") if alive else float("inf")
        return {"opened": opened, "left": left, "udp": ratios[0], "tcp": ratios[1], "peak": peak,
                "before": before, "after": after, "alive": alive}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", "target"))
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("--ebbtide", default=str(target / "release/ebbtide"))
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--least", type=float, default=0.9, help="honest rate over that of the control")
    parser.add_argument("--megabytes", type=float, default=128, help="of the server, at its peak")
    parser.add_argument("--nice", type=int, default=0, help="as for interop/attack/floods.py")
    parser.add_argument("--hostile", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.hostile:
        return hostile(options.hostile, options.connections, options.seconds)
    unknown = set(options.kinds) - set(KINDS)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
    network.prefer(options.nice)
    print("| connections | opened | there at the end | honest over UDP, of the control | over TCP | memory before, MB "
          "| at the peak | 10 s after the end |")
    print("|---|---|---|---|---|---|---|---|")
    missed = []
    for kind in options.kinds or KINDS:
        got = row(kind, options)
        print(f"| {kind} | {got['opened']:,} | {got['left']:,} | {got['udp']:.2f} | {got['tcp']:.2f} | "
              f"{got['before']:.0f} | {got['peak']:.0f} | {got['after']:.0f} |", flush=True)
        slow = min(got["udp"], got["tcp"]) < options.least
        # What was held is given back, all but what the allocator keeps for the next connections.
        kept = got["after"] > got["before"] + 0.25 * (got["peak"] - got["before"]) + 8
        if not got["alive"] or slow or kept or got["peak"] > options.megabytes:
            missed.append(kind)
    if missed:
        sys.exit(f"beyond the bounds (honest at {options.least}, {options.megabytes} MB): {', '.join(missed)}")
    return None


if __name__ == "__main__":
    main()
