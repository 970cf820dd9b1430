#!/usr/bin/env python3
"""The effect of floods from forged addresses on an honest client.

The script makes two network namespaces, joined by a virtual cable. `ebbtide serve` runs in the one,
on the first core; the honest client and the flood run in the other, on the second core. Each flood
is sent twice: to the server, and, as a control, to an address without a host. The flood's own
cost is therefore in both figures, and their ratio is the flood's cost to the honest client.

    cargo build --release -p ebbtide-cli --bins --examples
    interop/attack/floods.py                    # every kind at 50,000 datagrams a second, five rounds
    interop/build.sh limit && interop/attack/floods.py --responder target/interop/limit/peer    # beside the least a server can do
    interop/attack/floods.py --rate 2000 --rounds 1 --seconds 1 get mix

It needs `unshare`, `nsenter`, `ip` and `taskset`, and the right to make user namespaces.
"""

import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import oscore
from network import NOBODY, SERVER, Namespaces, dropped, memory, prefer, processor, serve, speaks_dtls13

KINDS = ["get", "long-get", "folder-list", "post", "observe", "observe-from-one", "block1", "q-block1", "ack",
         "reset", "ping", "malformed", "mix", "client-hello", "client-hello-13", "oscore"]
FILES = 2000


def over_dtls(kind):
    return kind.startswith("client-hello")


def credentials(stack, kind):
    """What a server and an honest client over DTLS are given: a key, or for DTLS 1.3 a certificate."""
    folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
    if kind == "client-hello":
        (folder / "keys").write_text("device:secret\n")
        (folder / "keys").chmod(0o600)
        return ["--psk-file", str(folder / "keys")], ["-u", "device", "-k", "secret"]
    own, key = str(folder / "own.pem"), str(folder / "own.key")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "2", "-subj", "/CN=server", "-addext", f"subjectAltName=IP:{SERVER}", "-keyout", key,
                    "-out", own], check=True, capture_output=True)
    return ["--cert", own, "--key", key, "--dtls13"], ["--insecure", "--dtls13"]


def sends(kind, options):
    """The kind of datagrams of a flood, and the number of addresses from which they come."""
    return ("observe", 1) if kind == "observe-from-one" else (kind, options.sources)


def measure(spaces, options, kind, to, pid, client):
    core = ["taskset", "-c", "1"] if os.cpu_count() > 1 else []
    span, began = options.seconds + 1, processor(pid)
    path = "/hello.txt" if kind == "folder-list" else "/test"
    scheme, port = ("coaps", 5684) if over_dtls(kind) else ("coap", 5683)
    datagrams, sources = sends(kind, options)
    flood = subprocess.Popen(
        spaces.inside(spaces.client, *core, options.flood, datagrams, f"{to}:{port}", str(options.rate),
                      str(span), str(sources)), stdout=subprocess.PIPE, text=True)
    time.sleep(0.5)
    bench = subprocess.run(
        spaces.inside(spaces.client, *core, options.ebbtide, "bench", f"{scheme}://{SERVER}{path}",
                      "--duration", str(options.seconds), "--json", *client),
        capture_output=True, text=True, timeout=60 + 10 * span)
    sent = int(flood.communicate(timeout=60)[0] or 0)
    honest = json.loads(bench.stdout) if bench.stdout else {"per_second": 0, "p99_us": float("inf")}
    ran = [after - before for before, after in zip(began, processor(pid))]
    return {"per_second": honest["per_second"], "p99_us": honest["p99_us"], "sent": sent / span,
            "answered": honest["per_second"] * options.seconds, "forged": sent, "ran": ran}


def costs(controls, floods):
    """Microseconds that the server runs for a forged datagram, in its own code and in the kernel. A
    control run tells what an honest request costs."""
    answered = sum(run["answered"] for run in controls)
    each = [sum(run["ran"][part] for run in controls) / max(answered, 1) for part in (0, 1)]
    forged = max(sum(run["forged"] for run in floods), 1)
    honest = sum(run["answered"] for run in floods)
    ran = [sum(run["ran"][part] for run in floods) for part in (0, 1)]
    return [1e6 * max(ran[part] - honest * each[part], 0) / forged for part in (0, 1)]


def row(kind, options, responder=None):
    with contextlib.ExitStack() as stack:
        spaces = Namespaces(stack)
        arguments, client = [], []
        if kind == "folder-list" and not responder:
            folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
            (folder / "hello.txt").write_text("hello")
            for number in range(FILES):
                (folder / f"{number:04}.txt").write_text("x")
            arguments = ["--dir", str(folder)]
        if over_dtls(kind):
            given, client = credentials(stack, kind)
            arguments = ["--bind", f"coaps://{SERVER}:5684", *given]
            # The honest client is at the same socket, in a session of its own.
            client = ["--engine", "client", *client]
        if kind == "oscore" and not responder:
            arguments, client = oscore.contexts(pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory())))
        server = serve(stack, spaces, options, arguments, responder)
        before_all = memory(server.pid, "VmRSS")
        ratios, honest, p99, sent, lost = [], [], [], [], []
        controls, floods = [], []
        for number in range(options.rounds):
            # In turn, so that what the machine does beside falls on both alike.
            before = dropped(spaces)
            order = (NOBODY, SERVER) if number % 2 == 0 else (SERVER, NOBODY)
            of = {to: measure(spaces, options, kind, to, server.pid, client) for to in order}
            control, flooded = of[NOBODY], of[SERVER]
            controls.append(control)
            floods.append(flooded)
            lost.append(dropped(spaces) - before)
            ratios.append(flooded["per_second"] / max(control["per_second"], 1e-9))
            honest.append(flooded["per_second"])
            p99.append(flooded["p99_us"] / max(control["p99_us"], 1e-9))
            sent.append(flooded["sent"])
        alive = server.poll() is None
        if not any(run["answered"] for run in controls):
            sys.exit(f"{kind}: no request of the honest client was answered, even without the flood")
        return {"kind": kind, "sent": statistics.median(sent), "honest": statistics.median(honest),
                "ratio": statistics.median(ratios), "p99_ratio": statistics.median(p99),
                "dropped": statistics.median(lost), "costs": costs(controls, floods),
                "before": before_all, "after": memory(server.pid, "VmRSS") if alive else float("inf"),
                "memory": memory(server.pid, "VmHWM") if alive else float("inf"), "alive": alive}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", "target"))
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("--ebbtide", default=str(target / "release/ebbtide"))
    parser.add_argument("--flood", default=str(target / "release/examples/flood"))
    parser.add_argument("--responder", help="interop/limit/responder.c, which answers every request from one "
                        "loop of two system calls; its ratio is shown beside the server's")
    parser.add_argument("--rate", type=int, default=50_000, help="datagrams a second")
    parser.add_argument("--sources", type=int, default=100_000, help="forged addresses")
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--least", type=float, default=0.9, help="honest rate over that of the control")
    parser.add_argument("--megabytes", type=float, default=128, help="of the server, at its peak")
    parser.add_argument("--nice", type=int, default=0,
                        help="of all processes; below 0, which needs the right to it, others on the "
                             "machine matter less")
    options = parser.parse_args()
    prefer(options.nice)
    for program in filter(None, (options.ebbtide, options.flood, options.responder)):
        if not os.access(program, os.X_OK):
            parser.error(f"{program} is not a program: build it first, or name another")
    unknown = set(options.kinds) - set(KINDS)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
    print("| flood | datagrams/s | honest requests/s | of the control | a responder's | 99th percentile, of the "
          "control | µs a datagram, own and kernel's | dropped by the kernel | memory before, after, at its peak, MB |")
    print("|---|---|---|---|---|---|---|---|---|")
    missed = []
    for kind in options.kinds or KINDS:
        if kind == "client-hello-13" and not speaks_dtls13(options):
            if options.kinds:
                parser.error(f"{kind}: build {options.ebbtide} with --features dtls13")
            print("skipped: client-hello-13, without the feature dtls13", flush=True)
            continue
        got = row(kind, options)
        bare = f"{row(kind, options, options.responder)['ratio']:.2f}" if options.responder and not over_dtls(kind) else ""
        print(f"| {kind} | {got['sent']:,.0f} | {got['honest']:,.0f} | {got['ratio']:.2f} | {bare} | "
              f"{got['p99_ratio']:.2f} | {got['costs'][0]:.1f} + {got['costs'][1]:.1f} | {got['dropped']:,.0f} | "
              f"{got['before']:.1f}, {got['after']:.1f}, {got['memory']:.1f} |", flush=True)
        if not got["alive"] or got["ratio"] < options.least or got["memory"] > options.megabytes:
            missed.append(kind)
    if missed:
        sys.exit(f"beyond the bounds (honest at {options.least}, {options.megabytes} MB): {', '.join(missed)}")


if __name__ == "__main__":
    main()
