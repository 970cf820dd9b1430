#!/usr/bin/env python3
"""Instructions that a server executes in its own code for each datagram of a kind, counted by valgrind, whatever else the
machine does.

    cargo build --release -p ebbtide-cli
    interop/attack/instructions.py                          # a kind a line
    interop/attack/instructions.py --beside OLD get post    # and beside those of another program: at most 3 % more

The server runs once without datagrams and once with `--count` of them, each from another address; the difference is theirs.
It needs `valgrind`, `unshare`, `nsenter` and `ip`, and the right to make user namespaces.
"""

import argparse
import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

from floods import credentials, over_dtls
from hostile import (BLOCK2, CONFIRMABLE, NON_CONFIRMABLE, OBSERVE, Q_BLOCK2, URI_PATH, client_hello, client_hello_13,
                     coap, udp)
from network import SERVER, Namespaces, speaks_dtls13

KINDS = {
    "get": lambda n: coap(CONFIRMABLE, n, [(URI_PATH, b"test")]),
    "not-found": lambda n: coap(CONFIRMABLE, n, [(URI_PATH, b"none")]),
    "long-get": lambda n: coap(CONFIRMABLE, n, [(URI_PATH, b"large")]),
    "later-block": lambda n: coap(CONFIRMABLE, n, [(URI_PATH, b"large"), (BLOCK2, b"\x16")]),
    "burst": lambda n: coap(NON_CONFIRMABLE, n, [(URI_PATH, b"large"), (Q_BLOCK2, b"\x0e")]),
    "observe": lambda n: coap(CONFIRMABLE, n, [(OBSERVE, b""), (URI_PATH, b"time")]),
    "post": lambda n: coap(CONFIRMABLE, n, [(URI_PATH, b"count")]).replace(b"\x01", b"\x02", 1),
    "ping": lambda n: bytes([0x40, 0, n >> 8 & 255, n & 255]),
    "acknowledgement": lambda n: bytes([0x60, 0, n >> 8 & 255, n & 255]),
    "malformed": lambda n: bytes([0x48, 1, n >> 8 & 255, n & 255]),
    "client-hello": lambda n: client_hello(n.to_bytes(32, "big"), b"", 0, bytes.fromhex("c0a8")),
    "client-hello-13": lambda n: client_hello_13(n.to_bytes(32, "big"), b"", 0),
}


def send(options):
    """Within the clients' namespace, in which all of 10.0.0.0/8 is local."""
    for number in range(options.count):
        with contextlib.closing(udp(f"10.8.{number >> 8 & 255}.{number & 255}")) as stranger:
            stranger.sendto(KINDS[options.send](number), (SERVER, 5684 if over_dtls(options.send) else 5683))
        time.sleep(1 / options.rate)


def instructions(program, options, kind, count):
    with contextlib.ExitStack() as stack:
        spaces = Namespaces(stack)
        secure = ["--bind", f"coaps://{SERVER}:5684", *credentials(stack, kind)[0]] if over_dtls(kind) else []
        server = stack.enter_context(subprocess.Popen(
            spaces.inside(spaces.server, "valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, "serve",
                          "--bind", f"{SERVER}:5683", *secure), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        stack.callback(server.kill)
        if not server.stdout.readline():
            sys.exit(f"{program} does not serve under valgrind: {server.stderr.read()}")
        # In both runs for as long, since an idle server looks at its clock now and then.
        until = time.monotonic() + 2 * options.count / options.rate
        subprocess.run(spaces.inside(spaces.client, sys.executable, __file__, "--send", kind, "--rate", str(options.rate),
                                     "--count", str(count)), check=True)
        time.sleep(max(until - time.monotonic(), 0))
        time.sleep(2)
        server.send_signal(signal.SIGINT)
        said = server.communicate(timeout=120)[1]
        return int(re.search(r"Collected : (\d+)", said).group(1))


def each(program, options, kind):
    idle = instructions(program, options, kind, 0)
    return (instructions(program, options, kind, options.count) - idle) / options.count


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", "target"))
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("--ebbtide", default=str(target / "release/ebbtide"))
    parser.add_argument("--beside", metavar="OLD", help="another program, for example of an earlier release")
    parser.add_argument("--count", type=int, default=5000, help="datagrams of a kind")
    parser.add_argument("--rate", type=int, default=1000, help="datagrams a second")
    parser.add_argument("--most", type=float, default=1.03, help="instructions over those of the other program")
    parser.add_argument("--send", choices=KINDS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.send:
        return send(options)
    print("| kind | instructions a datagram | of the other program |\n|---|---|---|", flush=True)
    dearer = []
    for kind in options.kinds or KINDS:
        if kind == "client-hello-13" and not speaks_dtls13(options):
            print("skipped: client-hello-13, without the feature dtls13", flush=True)
            continue
        own = each(options.ebbtide, options, kind)
        ratio = own / each(options.beside, options, kind) if options.beside else None
        print(f"| {kind} | {own:,.0f} | {f'{ratio:.2f}' if ratio else ''} |", flush=True)
        if ratio and ratio > options.most:
            dearer.append(kind)
    if dearer:
        sys.exit(f"dearer than {options.beside} by more than {options.most - 1:.0%}: {', '.join(dearer)}")
    return None


if __name__ == "__main__":
    main()
