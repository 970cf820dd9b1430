#!/usr/bin/env python3
"""The tables of studies/coap-pm.md: what the option of draft-ietf-core-coap-pm would tell, beside the truth.

    studies/scripts/coap_pm.py target/release/ebbtide

The endpoints measure with the option (`coap.pm_block`). For stacks that repeat an encoded message unchanged, the script lays the square bit
over the traces of `ebbtide replay`: every message of a client in the order in which it was first sent, and what arrived in the order of
its arrival.
"""

import json
import statistics
import subprocess
import sys
from typing import Iterable, Iterator

BLOCK = 64  # messages in each half wave (the draft's example)
CONTROLS = ["default", "cocoa", "fasor", "fasor-token", "fasor-option", "ebb"]
LOSSY = ["clients=20", "exchanges=640", "errors=low"]
CROWDED = ["clients=150", "exchanges=128", "buffer=infinite"]


def output_of(command: list[str], settings: list[str]) -> str:
    for setting in settings:
        command += ["--set", setting]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def measured(program: str, control: str, settings: list[str]) -> dict[str, float]:
    """The losses that server and clients measure with the option, up and down."""
    command = [program, "run", "nb-iot", "--cc", control, "--reps", "1", "--json"]
    figures = json.loads(output_of(command, [*settings, f"coap.pm_block={BLOCK}"]))["cells"][0]["measurement"]
    return {"up": figures["loss_up"], "down": figures["loss_down"]}


def traced(program: str, control: str, settings: list[str]) -> Iterator[dict]:
    for line in output_of([program, "replay", "nb-iot", "--cc", control, "--trace", "-"], settings).splitlines():
        event = json.loads(line)
        # An empty message cannot carry an option (RFC 7252 section 4.1).
        if not event.get("probe"):
            yield event


def loss_of(received: Iterable[int]) -> float:
    """The loss that an observer of the square bit finds: the places of the wave that arrived, as numbers of blocks."""
    counts: dict[int, int] = {}
    for block in received:
        counts[block] = counts.get(block, 0) + 1
    complete = [counts.get(block, 0) for block in range(max(counts, default=0))]
    return 1 - statistics.fmean(complete) / BLOCK if complete else 0.0


class Flow:
    """One direction of one client."""

    def __init__(self) -> None:
        self.messages: dict[int, int] = {}  # place in the order of originals
        self.sent, self.lost = 0, 0
        self.encoded: list[int] = []  # blocks of what arrived, if copies repeat the place of their original
        self.distinct: dict[int, int] = {}  # if the receiver leaves copies out, too

    def take(self, event: dict) -> None:
        message = self.messages.setdefault(event["exchange"], len(self.messages))
        if event["fate"] == "delivered":
            self.encoded.append(message // BLOCK)
            self.distinct.setdefault(message, message // BLOCK)
        else:
            self.lost += 1
        self.sent += 1


def row(program: str, control: str, settings: list[str]) -> list[str]:
    flows: dict[tuple[int, str], Flow] = {}
    sent: dict[tuple[int, int, int], float] = {}
    errors: dict[str, list[float]] = {"original": [], "last": [], "mark": []}
    for event in traced(program, control, settings):
        if event["event"] == "sent":
            sent[event["client"], event["exchange"], event["ordinal"]] = event["t"]
        elif event["event"] == "link":
            flows.setdefault((event["client"], event["direction"]), Flow()).take(event)
        elif event["event"] == "answered":
            true = event["t"] - sent[event["client"], event["exchange"], event["ordinal"]]
            sample = event["sample"]
            errors["original"].append(sample["since_first_s"] / true)
            errors["last"].append(sample["since_last_s"] / true)
            if sample.get("answered"):
                errors["mark"].append(sample["answered"]["since_s"] / true)
    own = measured(program, control, settings)
    out = []
    for direction in ("up", "down"):
        chosen = [flow for (_, way), flow in flows.items() if way == direction]
        true = sum(flow.lost for flow in chosen) / sum(flow.sent for flow in chosen)
        seen = [
            statistics.fmean(loss_of(part(flow)) for flow in chosen)
            for part in (lambda f: f.encoded, lambda f: f.distinct.values())
        ]
        out += [f"{100 * share:.1f}" for share in (true, own[direction], *seen)]
    # A control without marks has no samples of copies: those of originals only are no measurement of all.
    is_marked = len(errors["mark"]) > 0.98 * len(errors["original"])
    out += [f"{statistics.fmean(errors[name]):.2f}" for name in ("original", "last")]
    return [*out, f"{statistics.fmean(errors['mark']):.2f}" if is_marked else "–"]


def main(program: str) -> None:
    head = ["control", *("true up", "option", "encoded", "distinct", "true down", "option", "encoded", "distinct", "original", "last", "mark")]
    for title, cells in [
        ("loss", [(f"{share:g} %", [*LOSSY, f"errors.low.average={share / 100}"]) for share in (1, 5, 10, 20)]),
        ("network", [("150 devices", CROWDED)]),
    ]:
        print(f"| {title} | {' | '.join(head)} |\n|{'---|' * (len(head) + 1)}")
        for name, settings in cells:
            for control in CONTROLS:
                print(f"| {name} | `{control}` | {' | '.join(row(program, control, settings))} |", flush=True)
        print()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
