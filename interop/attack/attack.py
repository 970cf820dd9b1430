#!/usr/bin/env python3
"""Attacks on a server, with an honest client beside them: what each costs, and whether it stays within its bound.

    cargo build --release -p ebbtide-cli
    interop/attack/attack.py                      # every row, three rounds each: some ten minutes
    interop/attack/attack.py --quick              # a row each once, short, with generous bounds: CI
    interop/attack/attack.py hellos amplification # some rows
    interop/attack/attack.py --gateway            # on a gateway in front of the server

The server runs in a network namespace, on the first core; attackers (hostile.py) and honest clients run in another one,
on the second core. An attack that costs honest clients something is directed at the server and, as a control, at an
address without a host, in turn; its figure is the ratio of what the honest client gets. floods.py and
connections.py, beside this program, hold the floods of forged addresses and of slow connections.

It needs `unshare`, `nsenter`, `ip`, `taskset`, `openssl` and `cc`, and the right to make user namespaces.
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

import oscore as forged
from hostile import tls_hello
from network import NOBODY, SERVER, Namespaces, memory, prefer, serve, speaks_dtls13

HOSTILE = pathlib.Path(__file__).with_name("hostile.py")
CHURN = HOSTILE.with_name("churn.c")


class Row:
    """What an attack came to: a figure, and whether it is within its bound."""

    def __init__(self, figure, bound, holds, remark=""):
        self.figure, self.bound, self.holds, self.remark = figure, bound, holds, remark


class Stage:
    """A server in its namespace and what is run in the other one."""

    def __init__(self, stack, options, *arguments):
        self.stack, self.options = stack, options
        self.spaces = Namespaces(stack)
        self.folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        self.server = serve(stack, self.spaces, options, [self.fill(word) for word in arguments])

    def fill(self, word):
        """Files that arguments name: a certificate and its key, and the keys of devices."""
        known = {"CERT": "own.pem", "KEY": "own.key", "PSK": "keys"}
        if word not in known:
            return word
        if word == "PSK":
            keys = self.folder / "keys"
            keys.write_text("device:secret\n")
            keys.chmod(0o600)
        elif word == "CERT":
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                            "-nodes", "-days", "2", "-subj", "/CN=server", "-addext", f"subjectAltName=IP:{SERVER}",
                            "-keyout", str(self.folder / "own.key"), "-out", str(self.folder / "own.pem")],
                           check=True, capture_output=True)
        return str(self.folder / known[word])

    def start(self, *command, stdin=None):
        """A process in the clients' namespace, on their core."""
        core = ["taskset", "-c", "1"] if os.cpu_count() > 1 else []
        process = self.stack.enter_context(subprocess.Popen(
            self.spaces.inside(self.spaces.client, *core, *command), stdin=stdin, stdout=subprocess.PIPE, text=True))
        self.stack.callback(process.kill)
        return process

    def hostile(self, *what, program=HOSTILE, **settings):
        """One of hostile.py's, or of another program's, when it is ready."""
        words = [f"--{name.replace('_', '-')}" + ("" if value is True else f"={value}")
                 for name, value in settings.items()]
        return begun(self.start(sys.executable, str(program), *what, *words))

    def bench(self, uri=f"coap://{SERVER}/test", *arguments, pace=("--window", "16")):
        """What a client gets that asks again as soon as it has its answer, 16 requests at a time, or at another pace."""
        done = self.start(self.options.ebbtide, "bench", uri, "--json", *pace,
                          "--duration", str(self.options.seconds), *arguments)
        said = json.loads(done.communicate(timeout=120)[0] or '{"per_second": 0, "p50_us": 0}')
        return {"per_second": said["per_second"], "p50_ms": said["p50_us"] / 1000}

    def get(self, *arguments):
        """The seconds of a request of the command, or None if it has failed."""
        began = time.monotonic()
        done = self.start(self.options.ebbtide, *arguments)
        try:
            said = done.communicate(timeout=600)
        except subprocess.TimeoutExpired:
            done.kill()
            return None
        return time.monotonic() - began if done.returncode == 0 and said[0] else None


def begun(process):
    if process.stdout.readline() != "ready\n":
        sys.exit(f"{process.args[-1]}: the attacker ended at once")
    return process


def result(process):
    line = process.stdout.readline()
    process.wait(timeout=60)
    return json.loads(line)


def beside(stage, attack, ask):
    """The honest client's rate beside an attack over that beside its control, and the last results."""
    options, ratios, asked, said = stage.options, [], None, None
    for number in range(options.rounds):
        rates = {}
        for to in (NOBODY, SERVER) if number % 2 == 0 else (SERVER, NOBODY):
            attacker = attack(to)
            time.sleep(0.5)
            got = ask(stage)
            rates[to] = got["per_second"]
            sent = result(attacker)
            asked, said = (got, sent) if to == SERVER else (asked, said)
        ratios.append(rates[SERVER] / max(rates[NOBODY], 1e-9))
    return statistics.median(ratios), asked, said


def ratio_row(stage, attack, bound, ask=Stage.bench):
    """A row whose figure is the ratio of the honest client's throughput."""
    ratio, asked, said = beside(stage, attack, ask)
    bound = stage.options.generous or bound
    remark = ", ".join(f"{name} {value:,.0f}" for name, value in said.items())
    return Row(f"{ratio:.2f}", f"at least {bound}", ratio >= bound,
               f"{remark}; honest {asked['per_second']:,.0f}/s, p50 {asked['p50_ms']:.1f} ms; "
               f"{memory(stage.server.pid, 'VmHWM'):.0f} MB")


SECURE = ("--bind", f"coaps://{SERVER}:5684", "--cert", "CERT", "--key", "KEY", "--psk-file", "PSK")


def hellos(stack, options):
    """ClientHellos of one address with correct cookies, replayed at 4,000/s, and plain CoAP at another socket."""
    stage = Stage(stack, options, *SECURE)
    return ratio_row(stage, lambda to: stage.hostile(
        "hellos", f"{SERVER}:5684", to=f"{to}:5684", rate=4000, count=options.ports,
        seconds=options.seconds + 1.5, certificates=True), 0.9)


def hellos13(stack, options):
    """The same of DTLS 1.3, if the program was built with the feature `dtls13`."""
    if not speaks_dtls13(options):
        return Row("skipped", "at least 0.9", True, "without the feature dtls13")
    stage = Stage(stack, options, *SECURE[:-2], "--dtls13")
    return ratio_row(stage, lambda to: stage.hostile(
        "hellos", f"{SERVER}:5684", to=f"{to}:5684", rate=4000, count=options.ports,
        seconds=options.seconds + 1.5, version_13=True), 0.9)


def distant(stack, options):
    """The same, and a handshake with a long round trip: its time over that without the attack."""
    stage = Stage(stack, options, *SECURE)
    stage.hostile("relay", f"{SERVER}:5684", round_trip=options.round_trip)
    request = ("get", "coaps://127.0.0.1:5684/test", "-u", "device", "-k", "secret")
    quiet = stage.get(*request)
    attacker = stage.hostile("hellos", f"{SERVER}:5684", rate=4000, count=options.ports,
                             seconds=30 * options.round_trip, certificates=True)
    beside_it = stage.get(*request)
    attacker.kill()
    if quiet is None:
        sys.exit("distant: no handshake even without the attack")
    longer = beside_it / quiet if beside_it else float("inf")
    return Row(f"{longer:.2f}", "at most 1.5", longer <= 1.5,
               f"round trip {options.round_trip:g} s; {quiet:.1f} s without it")


def amplification(stack, options):
    """Forged requests from the address of a client that was verified and is silent: bytes out for each byte in."""
    stage = Stage(stack, options)
    found = result(stage.hostile("forged", f"{SERVER}:5683", count=50, seconds=options.listen))
    worst = max(found, key=found.get)
    return Row(f"{found[worst]:.2f}", "at most 3", found[worst] <= 3,
               "; ".join(f"{name} {factor:.2f}" for name, factor in found.items()))


def churn(stack, options):
    """TLS connections of 90 addresses at 4,000/s that leave when the server has signed, and plain CoAP over UDP at 500 requests a
    second; and its throughput."""
    stage = Stage(stack, options, "--bind", f"coaps+tcp://{SERVER}:5684", "--cert", "CERT", "--key", "KEY")
    program, hello = stage.folder / "churn", stage.folder / "hello"
    subprocess.run(["cc", "-O2", "-o", str(program), str(CHURN)], check=True)
    hello.write_bytes(tls_hello())

    def attack(to):
        with hello.open("rb") as said:
            return begun(stage.start(str(program), to, "5684", "4000", str(options.seconds + 1.5), "90", stdin=said))

    steady = ratio_row(stage, attack, 0.8, lambda stage: stage.bench(pace=("--rate", "500")))
    # A server and a client that have nothing else to do share their cores with the kernel's work for the connections.
    throughput, _, _ = beside(stage, attack, Stage.bench)
    return Row(f"{steady.figure}; {throughput:.2f}", f"{steady.bound}; above 0", steady.holds and throughput > 0, steady.remark)


def takeover(stack, options):
    """A copy of each record of a client's session from another address, which arrives first: bytes towards that address for each that
    came from there, and what the client gets, of the control."""
    stage, seconds = Stage(stack, options, *SECURE), options.seconds + 3

    def copies(to):
        return stage.hostile("takeover", f"{SERVER}:5684", to=f"{to}:5684", seconds=seconds)

    def ask(stage):
        return stage.bench("coaps://127.0.0.1/test", "--engine", "client", "-u", "device", "-k", "secret")

    ratio, _, said = beside(stage, copies, ask)
    factor = said["stolen"] / max(said["copied"], 1)
    return Row(f"{factor:.2f}; {ratio:.2f}", "at most 3; above 0", factor <= 3 and ratio > 0, f"{said['copied']:,} bytes copied")


def forwards(stack, options):
    """Requests of one address at 2,000/s that a gateway is to forward to 1,000 devices that do not answer, and the throughput of a client of
    another device in their cell."""
    gateway = argparse.Namespace(**{**vars(options), "gateway": True})
    stage = Stage(stack, gateway, "--allow", "10.9.0.0/16", "--cell", "10.9.0.0/16,127.0.0.0/8", "--cache", "0", "--deadline", "2")
    attacked = []

    def attack(to):
        if attacked:
            # What waits of an earlier attack is over.
            time.sleep(5)
        attacked.append(to)
        return stage.hostile("forwards", f"{SERVER}:5683", to=f"{to}:5683", rate=2000, count=1000, seconds=options.seconds + 1.5)

    # All rounds together need fewer message IDs than the gateway has for a device within EXCHANGE_LIFETIME.
    pace = ("--window", "4", "--requests", "8000")
    return ratio_row(stage, attack, 0.9, lambda stage: stage.bench(f"coap://{SERVER}/test", "--engine", "client", pace=pace))


def emulator(stack, options):
    """A program behind the emulator, which runs as root, that forges the sources of its packets and sends what is no IPv4: how many forged ones
    reach the host."""
    spaces = Namespaces(stack)
    within = spaces.inside(spaces.server)
    heard = begun(stack.enter_context(subprocess.Popen(
        [*within, sys.executable, str(HOSTILE), "listen", "10.83.0.1:5683", "--seconds=60"], stdout=subprocess.PIPE, text=True)))
    stack.callback(heard.kill)
    ran = subprocess.run([*within, options.ebbtide, "emulate", "--link", "building", "--", sys.executable, str(HOSTILE), "behind", "10.83.0.1:5683",
                          "--count=200"], check=False, capture_output=True, text=True)
    got = result(heard)
    if not got["honest"]:
        sys.exit(f"emulator: nothing passes: {ran.stderr}")
    return Row(str(got["forged"]), "none", not got["forged"], "what is not forged arrives")


def scrapes(stack, options):
    """Scrapes of the metrics beside 64 connections that creep: how many come within a second."""
    stage = Stage(stack, options, "--metrics", f"{SERVER}:9683")
    stage.hostile("creep", f"{SERVER}:9683", count=64, seconds=3600)
    got = result(stage.hostile("scrape", f"{SERVER}:9683", seconds=options.seconds))
    share = got["came"] / max(got["tried"], 1)
    return Row(f"{share:.2f}", "at least 0.9", share >= 0.9, f"{got['came']} of {got['tried']}")


def leftovers(stack, options):
    """PUTs to a folder in which a server with the same process ID was killed while it wrote."""
    folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
    for name in (".ebbtide-1-0.part", ".ebbtide-1-1.part", ".ebbtide-1-2.part"):
        (folder / name).write_bytes(bytes(1000))
    spaces = Namespaces(stack)
    server = stack.enter_context(subprocess.Popen(
        spaces.inside(spaces.server, "unshare", "--pid", "--fork", "--kill-child", options.ebbtide, "serve", "--bind",
                      f"{SERVER}:5683", "--dir", str(folder), "--writable"), stdout=subprocess.PIPE, text=True))
    stack.callback(server.kill)
    server.stdout.readline()
    done = [subprocess.run(spaces.inside(spaces.client, options.ebbtide, "put", f"coap://{SERVER}/file", "-e", "x"),
                           check=False, capture_output=True).returncode for _ in range(4)]
    left = len(list(folder.glob(".*.part")))
    return Row(f"{done.count(0)} of 4", "4 of 4, nothing left", done.count(0) == 4 and left == 0, f"{left} left")


def oscore(stack, options):
    """Forged OSCORE requests of an honest client's ID at 50,000/s, and that client's throughput."""
    server, client = forged.contexts(pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory())))
    stage = Stage(stack, options, *server)

    def attack(to):
        return stage.hostile(f"{to}:5683", program=forged.__file__, rate=50_000, seconds=options.seconds + 1.5)

    return ratio_row(stage, attack, 0.9, lambda stage: stage.bench(f"coap://{SERVER}/test", *client))


def edhoc(stack, options):
    """EDHOC handshakes that one address begins at 4,000/s; throughput of an honest client of OSCORE, from its handshake on."""
    server, client = forged.credentials(pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory())))
    stage = Stage(stack, options, *server)

    def attack(to):
        return stage.hostile("edhoc", f"{SERVER}:5683", to=f"{to}:5683", rate=4000, seconds=options.seconds + 1.5)

    return ratio_row(stage, attack, 0.9, lambda stage: stage.bench(f"coap://{SERVER}/test", "--engine", "client", *client))


ROWS = {each.__name__: each for each in (
    hellos, hellos13, distant, amplification, churn, takeover, scrapes, leftovers, oscore, edhoc, forwards, emulator)}

# Rows of the long round alone.
OF_THE_LONG_ROUND = ("edhoc", "forwards")

# Rows whose server needs no option that a gateway has not.
OF_A_GATEWAY = ("hellos", "distant", "amplification", "churn", "takeover")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", "target"))
    parser.add_argument("rows", nargs="*", metavar="ROW", help=", ".join(ROWS))
    parser.add_argument("--ebbtide", default=str(target / "release/ebbtide"))
    parser.add_argument("--quick", action="store_true", help="one short round of each")
    parser.add_argument("--gateway", action="store_true",
                        help="attack `ebbtide proxy` in front of the server: " + ", ".join(OF_A_GATEWAY))
    parser.add_argument("--nice", type=int, default=0, help="of all processes")
    parser.add_argument("--list", action="store_true", help="only the names of all rows")
    options = parser.parse_args()
    if options.list:
        return print(*ROWS)
    quick = options.quick
    # A machine that does other work beside shows that an attack does not stop the honest client, and not how much it costs.
    options.rounds, options.seconds, options.listen, options.generous = (1, 2, 4, 0.3) if quick else (3, 4, 60, None)
    options.ports, options.round_trip = (5000, 1) if quick else (6000, 10)
    if unknown := set(options.rows) - set(ROWS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(ROWS)}")
    if not os.access(options.ebbtide, os.X_OK):
        parser.error(f"{options.ebbtide} is not a program: build it first, or name another with --ebbtide")
    prefer(options.nice)
    print("| attack | figure | bound | beside |\n|---|---|---|---|", flush=True)
    missed = []
    some = [name for name in ROWS if not quick or name not in OF_THE_LONG_ROUND]
    for name in options.rows or (OF_A_GATEWAY if options.gateway else some):
        with contextlib.ExitStack() as stack:
            got = ROWS[name](stack, options)
        print(f"| {name}: {ROWS[name].__doc__.splitlines()[0]} | {got.figure} | {got.bound} | {got.remark} |", flush=True)
        if not got.holds:
            missed.append(name)
    if missed:
        sys.exit(f"beyond the bounds: {', '.join(missed)}")


if __name__ == "__main__":
    main()
