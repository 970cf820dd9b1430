#!/usr/bin/env python3
"""Instructions that a server executes in its own code for each datagram of a kind, counted by valgrind, whatever else the
machine does.

    cargo build --release -p ebbtide-cli --bins --examples
    interop/attack/instructions.py                          # a kind a line
    interop/attack/instructions.py --beside OLD get post    # and beside those of another program: at most 3 % more

The server runs once without datagrams and once with `--count` of them, from forged addresses as floods.py sends them; the
difference is theirs. It needs `valgrind`, `unshare`, `nsenter` and `ip`, and the right to make user namespaces.
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

from network import SERVER, Namespaces

KINDS = ["get", "long-get", "post", "observe", "block1", "q-block1", "ack", "reset", "ping", "malformed", "mix"]


def instructions(program, options, kind, count):
    with contextlib.ExitStack() as stack:
        spaces = Namespaces(stack)
        server = stack.enter_context(subprocess.Popen(
            spaces.inside(spaces.server, "valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, "serve",
                          "--bind", f"{SERVER}:5683"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        stack.callback(server.kill)
        if not server.stdout.readline():
            sys.exit(f"{program} does not serve under valgrind: {server.stderr.read()}")
        if count:
            subprocess.run(spaces.inside(spaces.client, options.flood, kind, f"{SERVER}:5683", str(options.rate),
                                         str(count // options.rate), "1000"), check=True, stdout=subprocess.PIPE)
        time.sleep(1)
        # nsenter hands the signal on to nobody: it has become the program.
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
    parser.add_argument("--flood", default=str(target / "release/examples/flood"))
    parser.add_argument("--beside", metavar="OLD", help="another program, for example of an earlier release")
    parser.add_argument("--count", type=int, default=2000, help="datagrams of a kind")
    parser.add_argument("--rate", type=int, default=500, help="datagrams a second")
    parser.add_argument("--most", type=float, default=1.03, help="instructions over those of the other program")
    options = parser.parse_args()
    print("| kind | instructions a datagram | of the other program |\n|---|---|---|", flush=True)
    dearer = []
    for kind in options.kinds or KINDS:
        own = each(options.ebbtide, options, kind)
        ratio = own / each(options.beside, options, kind) if options.beside else None
        print(f"| {kind} | {own:,.0f} | {f'{ratio:.2f}' if ratio else ''} |", flush=True)
        if ratio and ratio > options.most:
            dearer.append(kind)
    if dearer:
        sys.exit(f"dearer than {options.beside} by more than {options.most - 1:.0%}: {', '.join(dearer)}")


if __name__ == "__main__":
    main()
