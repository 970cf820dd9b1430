"""Whether a device's messages leave at the instants of the simulator's when the same ones are lost, and the figure of both.

The device's clock is here, and runs from one event to the next: how busy this machine is changes nothing.
"""

import itertools
import json
import math
import re
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from pathlib import Path

from build import ROOT, Image
from device import Device, Failed, Host, call, ebbtide_server
from relay import END, stuffed, udp, unstuffed

SCENARIO = ROOT / "instants.toml"
FIGURE = ROOT.parent / "docs/img/device-instants.svg"
# The seed of the scenario.
SEED = 5
CONTROL = "fasor-token"
# Real seconds after which a device or a server that says nothing has failed.
PATIENCE = 60


@dataclass(frozen=True)
class Sent:
    """A transmission of the simulator's client."""

    at_us: int
    exchange: int


@dataclass(frozen=True)
class Simulated:
    """A run of the simulator: what its client sent, and the delays of its datagrams in ns; a lost one has none."""

    sent: list[Sent]
    up: list[int | None]
    down: list[int | None]


def simulated(ebbtide: Path) -> Simulated:
    """Runs the scenario."""
    run = Simulated([], [], [])
    lines = call([str(ebbtide), "replay", str(SCENARIO), "--cc", CONTROL, "--seed", str(SEED), "--trace", "-"])
    for event in (json.loads(line) for line in lines.splitlines() if line.startswith("{")):
        if event["event"] == "sent":
            run.sent.append(Sent(round(event["t"] * 1e6), event["exchange"]))
        elif event["event"] == "link":
            delay = round(event["until"] * 1e9) - round(event["t"] * 1e9)
            way = run.up if event["direction"] == "up" else run.down
            way.append(delay if event["fate"] == "delivered" else None)
    return run


def key_of_stream(name: str) -> str:
    """The key of a stream of random numbers in the simulator: seed, replication, and FNV-1a of the name."""
    fnv = 0x6C62272E07BB014262B821756295C58D
    for byte in name.encode():
        fnv = (fnv ^ byte) * 0x0000000001000000000000000000013B % (1 << 128)
    return (SEED.to_bytes(16, "little") + fnv.to_bytes(16, "little")).hex()


def frames(line: socket.socket) -> Iterator[bytes]:
    """What the device sends over its serial line, until it ends."""
    partial = b""
    while received := line.recv(65536):
        *whole, partial = (partial + received).split(END)
        yield from filter(None, whole)


def play(line: socket.socket, server: tuple[str, int], run: Simulated) -> None:
    """Is the network and the clock of a device: each datagram has the fate of the simulator's with its number."""
    up, down = iter(run.up), iter(run.down)
    now, number = 0, 0
    arriving: list[tuple[int, int, bytes]] = []
    with udp() as out:
        out.settimeout(PATIENCE)
        for frame in frames(line):
            (_, port), data = unstuffed(frame)
            if port == 0:
                # The device waits until an instant.
                due = int.from_bytes(data, "big")
                arrived = b""
                if arriving and arriving[0][0] <= due:
                    due, _, arrived = heappop(arriving)
                now = due
                line.sendall(stuffed(server, now.to_bytes(8, "big") + arrived))
                continue
            there = next(up, None)
            if there is None:
                continue
            out.sendto(data, server)
            answer = out.recv(65535)
            back = next(down, None)
            if back is not None:
                number += 1
                heappush(arriving, (now + there + back, number, answer))


def device_sent(host: Host, image: Image, run: Simulated) -> list[int]:
    """The microseconds at which the device sends on the path of a run."""
    with ebbtide_server(host) as port, socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(PATIENCE)
        to = f"socket,id=line,host=127.0.0.1,port={listening.getsockname()[1]}"
        arguments = {"port": port, "key": key_of_stream("client/0")}
        device = Device(image, ["-nic", "none", "-chardev", to, "-serial", "chardev:line"], arguments)
        try:
            line, _ = listening.accept()
            with line:
                line.settimeout(PATIENCE)
                play(line, ("127.0.0.1", port), run)
            device.finish()
        except (TimeoutError, ConnectionError) as error:
            raise Failed(f"{error}: {device.output}") from error
        finally:
            device.stop()
    return [int(at) for at in re.findall(r"^sent_us +(\d+)$", device.output, re.M)]


def drawn(host: Host, image: Image) -> tuple[list[int], str]:
    """Runs simulator and device, and fails if an instant differs. Returns the instants and their figure."""
    run = simulated(host.ebbtide)
    sent = device_sent(host, image, run)
    for number, (one, other) in enumerate(itertools.zip_longest(sent, (each.at_us for each in run.sent))):
        if one != other:
            raise Failed(f"transmission {number}: the device sends at {one} us, the simulator at {other} us")
    return sent, figure(run.sent, sent)


def compare(host: Host, image: Image) -> dict[str, int]:
    """Fails if an instant differs, or if the figure of the documents shows others."""
    sent, svg = drawn(host, image)
    if FIGURE.read_text(encoding="utf-8") != svg:
        raise Failed(f"{FIGURE.name} shows other instants: firmware/check.py --write")
    return {"sent": len(sent)}


def write_figure(host: Host, image: Image) -> None:
    FIGURE.write_text(drawn(host, image)[1], encoding="utf-8")


def figure(simulator: list[Sent], device: list[int]) -> str:
    """A row for each request that was retransmitted, with its transmissions by the time since the first."""
    rows: dict[int, list[tuple[float, float]]] = {}
    begun: dict[int, int] = {}
    for each, at_us in zip(simulator, device, strict=True):
        first = begun.setdefault(each.exchange, each.at_us)
        rows.setdefault(each.exchange, []).append(((each.at_us - first) / 1e6, (at_us - first) / 1e6))
    rows = {exchange: row for exchange, row in rows.items() if len(row) > 1}
    left, top, width, row_height = 90, 44, 560, 22
    height = top + row_height * len(rows)
    x = lambda seconds: left + width * math.log10(seconds / 0.5) / math.log10(40)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 30} {height + 52}" font-family="sans-serif" font-size="12">']
    out.append(f'<rect width="{left + width + 30}" height="{height + 52}" fill="#fff"/>')
    out.append(f'<circle cx="{left + 6}" cy="16" r="5" fill="none" stroke="#2166ac" stroke-width="2"/>')
    out.append(f'<text x="{left + 18}" y="20">simulator</text>')
    out.append(f'<path d="M{left + 106} 9v14" stroke="#b2182b" stroke-width="2"/>')
    out.append(f'<text x="{left + 114}" y="20">Cortex-M3 in QEMU</text>')
    for seconds in (0.5, 1, 2, 5, 10, 20):
        out.append(f'<path d="M{x(seconds):.1f} {top - 8}V{height}" stroke="#ddd"/>')
        out.append(f'<text x="{x(seconds):.1f}" y="{height + 16}" text-anchor="middle">{seconds:g}</text>')
    out.append(f'<text x="{left + width / 2}" y="{height + 38}" text-anchor="middle">seconds since the first transmission</text>')
    for place, (exchange, row) in enumerate(rows.items()):
        y = top + row_height * place + 6
        out.append(f'<text x="{left - 12}" y="{y + 4}" text-anchor="end">request {exchange + 1}</text>')
        for of_simulator, of_device in row[1:]:
            out.append(f'<circle cx="{x(of_simulator):.1f}" cy="{y}" r="5" fill="none" stroke="#2166ac" stroke-width="2"/>')
            out.append(f'<path d="M{x(of_device):.1f} {y - 8}v16" stroke="#b2182b" stroke-width="2"/>')
    return "\n".join([*out, "</svg>"]) + "\n"
