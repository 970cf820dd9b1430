"""One server with one client, or with datagrams of the runner, feature by feature."""

import itertools
import os
import socket
import time
from pathlib import Path
from typing import TextIO

from adapter import Adapter, AdapterError, Endpoint, Limits, Program, Unsupported
from features import SETTINGS, Feature, Setting
from raw import NotSupported, Probe, RawFeature
from relay import CONDITIONS, DTLS13, HANDSHAKE, WITH_CID, Move, Relay, StreamRelay


# Below those that the system gives to sockets without a port: another program must not get a port between its choice here and the
# start of the adapter.
PORTS = itertools.cycle(range(10_000 + os.getpid() % 20_000, 32_000))


def free_port(host: str) -> int:
    """A port that is free for UDP and TCP, and that this program has not chosen lately."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for port in itertools.islice(PORTS, 1000):
        with socket.socket(family, socket.SOCK_DGRAM) as udp, socket.socket(family, socket.SOCK_STREAM) as tcp:
            try:
                udp.bind((host, port))
                tcp.bind((host, port))
            except OSError:
                continue
            return port
    raise AdapterError(f"no port of {host} is free")


class Pair:
    """One server and one client."""

    def __init__(self, server: Adapter, client: Adapter, out: Path, limits: Limits, refused: set[tuple[str, str, str]] | None = None) -> None:
        self.adapters = {"server": server, "client": client}
        self.out, self.limits = out, limits
        # Adapter, role and scheme that exited with 127; shared by all pairs, so that each is started for it only once.
        self.refused = set() if refused is None else refused
        self.name = f"{server.name}--{client.name}"
        self.results: list[dict] = []
        self.server: Program | None = None

    def run(self, features: list[Feature]) -> dict:
        began = time.monotonic()
        with (self.out / f"{self.name}.log").open("w", buffering=1) as log:
            for scheme in dict.fromkeys(feature.scheme for feature in features):
                self.run_scheme(scheme, [feature for feature in features if feature.scheme == scheme], log)
        passed = sum(result["status"] == "pass" for result in self.results)
        seconds = time.monotonic() - began
        print(f"{self.name}: {passed} of {len(self.results)} in {seconds:.0f} s", flush=True)
        names = {role: adapter.name for role, adapter in self.adapters.items()}
        return names | {"seconds": round(seconds, 1), "results": self.results}

    def common_extensions(self) -> int:
        return len(self.adapters["server"].extensions & self.adapters["client"].extensions)

    def record(self, feature: Feature, status: str, reason: str | None, log: TextIO) -> dict:
        print(f"{status.upper()} {feature.group}, {feature.name}: {reason or ''}\n", file=log)
        self.results.append({"group": feature.group, "name": feature.name, "status": status, "reason": reason})
        return self.results[-1]

    def setting(self, scheme: str) -> Setting:
        """The scheme and the environment of the adapters."""
        setting = SETTINGS.get(scheme, Setting("coap" if scheme == "coap6" else scheme, "", {}))
        for role, adapter in self.adapters.items():
            if (setting.extension and setting.extension not in adapter.extensions) or (adapter.name, role, scheme) in self.refused:
                raise Unsupported(f"{role}: not supported")
        folder = str(self.out.resolve() / "certificates")
        return setting._replace(environment={name: value or folder for name, value in setting.environment.items()})

    def start(self, role: str, scheme: str, at: Endpoint, settings: dict[str, str], log: TextIO) -> Program:
        adapter = self.adapters[role]
        try:
            return adapter.program(role, at, settings, log, self.limits)
        except Unsupported as error:
            self.refused.add((adapter.name, role, scheme))
            raise Unsupported(f"{role}: {error}") from error
        except AdapterError as error:
            raise AdapterError(f"{role}: {error}") from error

    def run_scheme(self, scheme: str, features: list[Feature], log: TextIO) -> None:
        """One server for all modes until a feature fails, with a client and a relay for each mode."""
        before = len(self.results)
        try:
            host = "::1" if scheme == "coap6" else "127.0.0.1"
            setting = self.setting(scheme)
            at = Endpoint(setting.scheme, host, free_port(host))
            for mode in dict.fromkeys(feature.mode for feature in features):
                self.run_mode(scheme, mode, [feature for feature in features if feature.mode == mode], at, setting.environment, log)
        except (AdapterError, Unsupported) as error:
            status = "missing" if isinstance(error, AdapterError) else "unsupported"
            done = {(result["group"], result["name"]) for result in self.results[before:]}
            for feature in features:
                if (feature.group, feature.name) not in done:
                    self.record(feature, status, str(error), log)
        finally:
            self.stop_server()

    def stop_server(self) -> None:
        if self.server:
            self.server.stop()
            self.server = None

    def run_mode(self, scheme: str, mode: str, features: list[Feature], served: Endpoint, settings: dict[str, str], log: TextIO) -> None:
        relay = stream = client = None
        failed = False
        before = len(self.results)
        if self.server and self.server.process.poll() is not None:
            self.stop_server()
        try:
            self.server = self.server or self.start("server", scheme, served, settings, log)
            if served.scheme in ("coap", "coaps"):
                suffix = "".join(f"-{part.replace(' ', '-')}" for part in (scheme, mode) if part not in ("coap", "clean"))
                relay = Relay(served.host, served.port, self.out / f"{self.name}{suffix}.pcap")
                at = served._replace(port=relay.port)
            else:
                stream = StreamRelay(served.host, served.port)
                at = served._replace(port=stream.port)
            for feature in features:
                self.server = self.server or self.start("server", scheme, served, settings, log)
                if client is None or client.process.poll() is not None:
                    client = self.start("client", scheme, at, settings, log)
                first, began = relay.capture.packets if relay else 0, time.monotonic()
                try:
                    status, reason = self.one(feature, client, relay, stream, log)
                except AdapterError as error:
                    status, reason = "fail", str(error)
                except Unsupported as error:
                    status, reason = "unsupported", str(error)
                result = self.record(feature, status, reason, log)
                result["seconds"] = round(time.monotonic() - began, 1)
                if relay and relay.capture.packets > first and status != "unsupported":
                    result |= {"capture": relay.capture.name, "packets": [first + 1, relay.capture.packets]}
                if status == "fail":
                    # What a failure leaves behind in the client must not spoil the next feature.
                    client.stop()
                    client, failed = None, True
                    if scheme == "oscore":
                        # The next client begins with the same keys and numbers, which the server has seen.
                        self.stop_server()
        except AdapterError as error:
            # The other modes may do.
            for feature in features[len(self.results) - before:]:
                self.record(feature, "missing", str(error), log)
        finally:
            if client:
                client.stop()
            if failed or scheme == "oscore":
                self.stop_server()
            for each in (relay, stream):
                if each:
                    each.close()

    def one(self, feature: Feature, client: Program, relay: Relay | None, stream: StreamRelay | None, log: TextIO) -> tuple[str, str | None]:
        first = relay.capture.packets if relay else 0
        before = stream.from_clients if stream else 0
        if relay:
            relay.set(feature.mode, f"{self.name} {feature.group} {feature.name}")
        asked = []
        for request in feature.requests:
            if CONDITIONS[feature.mode].move is Move.BETWEEN_REQUESTS and asked and relay:
                relay.move()
            settings = [word.partition("=") for word in request.split()]
            wait = next((float(value) for key, _, value in settings if key == "wait"), self.limits.request)
            print(f"  > {request[:200]}", file=log)
            asked.append(client.ask(request, wait))
            if asked[-1][0].code == "error" and len(feature.requests) > 2:
                break
        wrong = feature.check(asked)
        if not wrong and relay and relay.capture.packets == first:
            wrong = "the client reports answers, but sent no datagram"
        if not wrong and stream and stream.from_clients == before:
            wrong = "the client reports answers, but sent no byte"
        if not wrong and feature.scheme == "cid" and relay:
            if not relay.records.get(WITH_CID):
                wrong = "no connection ID was negotiated"
            elif feature.mode == "moved" and relay.records.get(HANDSHAKE):
                wrong = "the client made another handshake"
        if not wrong and feature.scheme == "dtls13" and relay and not any(relay.records.get(first) for first in DTLS13):
            wrong = "DTLS 1.3 was not negotiated"
        if not wrong and feature.name == "observation cancelled" and relay:
            time.sleep(0.8)
            heard = relay.to_client
            time.sleep(1.0)
            if relay.to_client > heard:
                wrong = f"{relay.to_client - heard} more datagrams in the second after it"
        return ("fail", wrong) if wrong else ("pass", None)


class RawPair:
    """One server, and datagrams that no library sends."""

    def __init__(self, server: Adapter, out: Path, limits: Limits) -> None:
        self.server, self.out, self.limits = server, out, limits
        self.name = f"{server.name}--raw"

    def run(self, features: list[RawFeature]) -> dict:
        began = time.monotonic()
        results: list[dict] = []
        server = relay = None
        with (self.out / f"{self.name}.log").open("w", buffering=1) as log:
            try:
                for feature in features:
                    if server is None:
                        at = Endpoint("coap", "127.0.0.1", free_port("127.0.0.1"))
                        server = self.server.program("server", at, {}, log, self.limits)
                        relay = relay or Relay(at.host, at.port, self.out / f"{self.name}.pcap")
                        relay.server = ("127.0.0.1", at.port)
                    print(feature.name, file=log)
                    first = relay.capture.packets
                    status, wrong = self.one(feature, relay, log)
                    if server.has_ended(0.05):
                        status, wrong, server = "fail", f"the server died ({wrong or 'after it answered'})", None
                    print(f"{status.upper()} {wrong or ''}\n", file=log)
                    results.append({
                        "name": feature.name, "status": status, "reason": wrong, "capture": relay.capture.name,
                        "packets": [first + 1, relay.capture.packets],
                    })
            except (AdapterError, Unsupported) as error:
                status = "missing" if isinstance(error, AdapterError) else "unsupported"
                done = {result["name"] for result in results}
                results += [{"name": f.name, "status": status, "reason": str(error)} for f in features if f.name not in done]
            finally:
                if server:
                    server.stop()
                if relay:
                    relay.close()
        passed = sum(result["status"] == "pass" for result in results)
        print(f"{self.name}: {passed} of {len(results)} in {time.monotonic() - began:.0f} s", flush=True)
        return {"server": self.server.name, "results": results}

    def one(self, feature: RawFeature, relay: Relay, log: TextIO) -> tuple[str, str | None]:
        probe = Probe(relay.port, log)
        try:
            wrong = feature.check(probe)
        except NotSupported as error:
            return "unsupported", str(error)
        except (IndexError, ValueError, OSError) as error:
            wrong = f"an answer that is no CoAP message ({error})"
        finally:
            probe.close()
        return ("fail", wrong) if wrong else ("pass", None)
