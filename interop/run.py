#!/usr/bin/env python3
"""Runs every server of interop/adapters.toml against every client, feature by feature.

    interop/run.py [--out DIR] [--only NAME,NAME] [--feature TEXT] [--jobs N] [--publish FILE]

DIR (target/interop/matrix) receives index.html, results.json, and for each pair a log and a capture.
FILE receives the page in Markdown. README.md describes adapters.
"""

import argparse
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "matrix"))
from certificates import make_certificates  # noqa: E402
from features import FEATURES, SETTINGS, Answer, Feature, Setting  # noqa: E402
from page import html, markdown  # noqa: E402
from raw import RAW, NotSupported, Probe, RawFeature  # noqa: E402
from relay import HANDSHAKE, WITH_CID, Relay  # noqa: E402

INTEROP = Path(__file__).resolve().parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", INTEROP.parent / "target")).resolve() / "interop"
UNSUPPORTED = 127
START = 30.0  # seconds until an adapter must say `ready`
WAIT = 8.0  # seconds for a request that does not set its own


class Missing(Exception):
    """An adapter that does not start; its text is shown in the matrix."""


class Unsupported(Exception):
    """An adapter without this scheme or call."""


class Program:
    """An adapter that runs. Its lines are read by a thread, so that a wait can end."""

    def __init__(self, command: list[str], log, settings: dict[str, str] | None = None) -> None:
        environment = {**os.environ, "NODE_PATH": str(TARGET / "node-coap/node_modules"), **(settings or {})}
        self.lines: queue.Queue[str | None] = queue.Queue()
        self.log = log
        try:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
                errors="replace", env=environment, start_new_session=True,
            )
        except OSError as error:
            raise Missing(f"the adapter cannot be started: {error.strerror}") from error
        threading.Thread(target=self.read, daemon=True).start()
        deadline = time.monotonic() + START
        while (line := self.line(deadline)) is not None:
            if line == "ready":
                return
        code = self.stop()
        if code == UNSUPPORTED:
            raise Unsupported("not supported")
        raise Missing(f"the adapter did not start (exit code {code})")

    def read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def line(self, deadline: float) -> str | None:
        try:
            return self.lines.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            return None

    def ask(self, request: str, wait: float) -> list[Answer]:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(request + "\n")
            self.process.stdin.flush()
        except OSError as error:
            raise Missing("the client has ended") from error
        answers = []
        deadline = time.monotonic() + wait + 5
        while (line := self.line(deadline)) != ".":
            if line is None:
                ended = self.process.poll() is not None
                raise Missing("the client has ended" if ended else "the client does not come back")
            print(f"  < {line[:200]}", file=self.log, flush=True)
            kind, _, rest = line.partition(" ")
            if kind == "unsupported":
                answers.append(Answer("unsupported", {}, rest.encode()))
            elif kind == "error":
                answers.append(Answer("error", {}, rest.encode()))
            elif len(line.split(" ")) == 3:
                answers.append(parsed(line))
        if any(answer.code == "unsupported" for answer in answers):
            raise Unsupported(answers[0].payload.decode())
        return answers or [Answer("error", {}, b"no answer")]

    def stop(self) -> int | None:
        try:
            self.process.wait(0.2)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        return self.process.returncode


def parsed(line: str) -> Answer:
    code, options, payload = line.split(" ")
    held = {}
    for option in options.split(",") if options != "-" else []:
        number, _, value = option.partition(":")
        try:
            held[int(number)] = bytes.fromhex(value)
        except ValueError:
            held[int(number)] = value.encode()
    return Answer(code, held, bytes.fromhex(payload) if payload != "-" else b"")


def free_port(host: str) -> int:
    """A port that is free for UDP and TCP."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for _ in range(50):
        with socket.socket(family, socket.SOCK_DGRAM) as udp, socket.socket(family, socket.SOCK_STREAM) as tcp:
            udp.bind((host, 0))
            try:
                tcp.bind((host, udp.getsockname()[1]))
            except OSError:
                continue  # a connection has it
            return udp.getsockname()[1]
    raise Missing(f"no port of {host} is free")


def command(adapter: dict, what: str, *arguments: str) -> list[str]:
    words = [word.format(target=TARGET, interop=INTEROP) for word in adapter[what]]
    return [*words, *arguments]


class Pair:
    """One server and one client."""

    def __init__(self, server: str, client: str, adapters: dict, out: Path) -> None:
        self.server, self.client, self.adapters, self.out = server, client, adapters, out
        self.name = f"{server}--{client}"
        self.results: list[dict] = []

    def command(self, name: str, what: str, *arguments: str) -> list[str]:
        return command(self.adapters[name], what, *arguments)

    def run(self, features: list[Feature]) -> dict:
        began = time.monotonic()
        with (self.out / f"{self.name}.log").open("w", buffering=1) as log:
            # Each has programs of its own, so that one does not suffer from what another left behind.
            for key in dict.fromkeys((feature.scheme, feature.mode) for feature in features):
                chosen = [f for f in features if (f.scheme, f.mode) == key]
                self.run_scheme(*key, chosen, log)
        passed = sum(result["status"] == "pass" for result in self.results)
        print(f"{self.name}: {passed} of {len(self.results)} in {time.monotonic() - began:.0f} s", flush=True)
        return {"server": self.server, "client": self.client, "results": self.results}

    def record(self, feature: Feature, status: str, reason: str | None, log, relay: Relay | None = None, first: int = 0) -> None:
        print(f"{status.upper()} {feature.group}, {feature.name}: {reason or ''}\n", file=log)
        result = {"group": feature.group, "name": feature.name, "status": status, "reason": reason}
        if relay and relay.capture.packets > first:
            result |= {"capture": relay.capture.name, "packets": [first + 1, relay.capture.packets]}
        self.results.append(result)

    def setting(self, scheme: str) -> Setting:
        """The scheme and the environment of the adapters."""
        setting = SETTINGS.get(scheme)
        if setting is None:
            return Setting(scheme, "", {})
        for which, name in (("server", self.server), ("client", self.client)):
            if setting.extension not in self.adapters[name].get("extensions", []):
                raise Unsupported(f"{which}: not supported")
        folder = str(self.out / "certificates")
        return setting._replace(environment={name: value or folder for name, value in setting.environment.items()})

    def run_scheme(self, scheme: str, mode: str, features: list[Feature], log) -> None:
        host = "::1" if scheme == "coap6" else "127.0.0.1"
        relay = server = client = None
        try:
            plain, _, settings = self.setting(scheme)
            plain = "coap" if plain == "coap6" else plain
            port = free_port(host)
            server = Program(self.command(self.server, "server", str(port), host, plain), log, settings)
            if plain in ("coap", "coaps") and scheme != "coap6":
                suffix = "".join(f"-{part}" for part in (scheme, mode) if part not in ("coap", "clean"))
                relay = Relay(port, self.out / f"{self.name}{suffix}.pcap")
            at = f"[{host}]:{port}" if scheme == "coap6" else f"{host}:{relay.port if relay else port}"
            command = self.command(self.client, "ask", f"{plain}://{at}")
            for feature in features:
                if client is None or client.process.poll() is not None:
                    client = Program(command, log, settings)
                first = relay.capture.packets if relay else 0
                try:
                    status, reason = self.one(feature, client, relay, log)
                    self.record(feature, status, reason, log, relay, first)
                    if status == "fail":
                        # What a failure leaves behind in the client must not spoil the next feature.
                        client.stop()
                        client = None
                except Missing as error:
                    self.record(feature, "fail", str(error), log, relay, first)
                    client.stop()
                    client = None
                except Unsupported as error:
                    self.record(feature, "unsupported", str(error), log)
        except (Missing, Unsupported) as error:
            status = "missing" if isinstance(error, Missing) else "unsupported"
            which = "client" if server else "server"
            text = str(error) if ":" in str(error) else f"{which}: {error}"
            done = {(result["group"], result["name"]) for result in self.results}
            for feature in features:
                if (feature.group, feature.name) not in done:
                    self.record(feature, status, text, log)
        finally:
            for program in (client, server):
                if program:
                    program.stop()
            if relay:
                relay.close()

    def one(self, feature: Feature, client: Program, relay: Relay | None, log) -> tuple[str, str | None]:
        if relay:
            relay.set(feature.mode, f"{self.name} {feature.group} {feature.name}")
        asked = []
        for request in feature.requests:
            if feature.mode == "moved" and asked and relay:
                relay.move()
            settings = [word.partition("=") for word in request.split()]
            wait = next((float(value) for key, _, value in settings if key == "wait"), WAIT)
            print(f"  > {request[:200]}", file=log)
            asked.append(client.ask(request, wait))
            if asked[-1][0].code == "error" and len(feature.requests) > 2:
                break
        wrong = feature.check(asked)
        if not wrong and feature.scheme == "cid" and relay:
            if not relay.records.get(WITH_CID):
                wrong = "no connection ID was negotiated"
            elif feature.mode == "moved" and relay.records.get(HANDSHAKE):
                wrong = "the client made another handshake"
        if not wrong and feature.name == "observation cancelled" and relay:
            time.sleep(0.8)
            before = relay.to_client
            time.sleep(1.0)
            if relay.to_client > before:
                wrong = f"{relay.to_client - before} more datagrams in the second after it"
        return ("fail", wrong) if wrong else ("pass", None)


class RawPair:
    """One server, and datagrams of our own."""

    def __init__(self, server: str, adapters: dict, out: Path) -> None:
        self.server, self.adapter, self.out = server, adapters[server], out
        self.name = f"{server}--raw"

    def run(self, features: list[RawFeature]) -> dict:
        began = time.monotonic()
        results: list[dict] = []
        server = relay = None
        with (self.out / f"{self.name}.log").open("w", buffering=1) as log:
            try:
                port = free_port("127.0.0.1")
                server = Program(command(self.adapter, "server", str(port), "127.0.0.1", "coap"), log)
                relay = Relay(port, self.out / f"{self.name}.pcap")
                for feature in features:
                    print(feature.name, file=log)
                    first = relay.capture.packets
                    probe = Probe(relay.port, log)
                    try:
                        wrong = feature.check(probe)
                        status = "fail" if wrong else "pass"
                    except NotSupported as error:
                        status, wrong = "unsupported", str(error)
                    finally:
                        probe.close()
                    print(f"{status.upper()} {wrong or ''}\n", file=log)
                    results.append({
                        "name": feature.name, "status": status, "reason": wrong, "capture": relay.capture.name,
                        "packets": [first + 1, relay.capture.packets],
                    })
            except (Missing, Unsupported) as error:
                results = [{"name": f.name, "status": "missing", "reason": str(error)} for f in features]
            finally:
                if server:
                    server.stop()
                if relay:
                    relay.close()
        passed = sum(result["status"] == "pass" for result in results)
        print(f"{self.name}: {passed} of {len(results)} in {time.monotonic() - began:.0f} s", flush=True)
        return {"server": self.server, "results": results}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=TARGET / "matrix")
    parser.add_argument("--only", default="", help="names of implementations, separated by commas")
    parser.add_argument("--feature", default="", help="features whose group or name contains this text")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--publish", type=Path, help="write the page in Markdown")
    arguments = parser.parse_args()
    adapters = tomllib.loads((INTEROP / "adapters.toml").read_text())
    only = [name for name in arguments.only.split(",") if name]
    if unknown := [name for name in only if name not in adapters]:
        print(f"adapters.toml has no {', '.join(unknown)}; it has {', '.join(adapters)}", file=sys.stderr)
        return 2
    names = only or list(adapters)
    features = [f for f in FEATURES if arguments.feature.lower() in f"{f.group} {f.name}".lower()]
    raw_features = [f for f in RAW if arguments.feature.lower() in f"raw datagrams {f.name}".lower()]
    if not features and not raw_features:
        print(f"no feature contains '{arguments.feature}'", file=sys.stderr)
        return 2
    arguments.out.mkdir(parents=True, exist_ok=True)
    pairs = [Pair(server, client, adapters, arguments.out) for server in names for client in names]
    make_certificates(arguments.out / "certificates")
    with ThreadPoolExecutor(arguments.jobs) as pool:
        results = list(pool.map(lambda pair: pair.run(features), pairs))
        raw = []
        if raw_features:
            raw = list(pool.map(lambda name: RawPair(name, adapters, arguments.out).run(raw_features), names))
    titles = {name: adapters[name].get("title", name) for name in names}
    (arguments.out / "results.json").write_text(json.dumps({"titles": titles, "pairs": results, "raw": raw}, indent=1))
    (arguments.out / "index.html").write_text(html(titles, features, results, raw_features, raw))
    if arguments.publish:
        arguments.publish.write_text(markdown(titles, features, results, raw_features, raw))
    print(f"see {arguments.out / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
