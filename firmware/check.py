#!/usr/bin/env python3
"""Builds the firmware, runs it in QEMU against Ebbtide and libcoap on this host, and compares it with its budgets.

    firmware/check.py --ebbtide target/debug/ebbtide            what CI runs
    firmware/check.py --ebbtide ... --full                      all programs on all boards
    firmware/check.py --ebbtide ... --write                     write table and figure of docs/devices.md
    firmware/check.py --ebbtide ... --only NAME                 one of the runs

Nothing here needs root: QEMU's network is in the process, and datagrams pass a relay on the loopback interface.
"""

import argparse
import concurrent.futures
import sys
from pathlib import Path

import budgets
import instants
from build import build
from device import Failed, Host
from runs import MORE_RUNS, RUNS, SERIAL

LOSS = 0.3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ebbtide", required=True, type=Path, help="the command")
    parser.add_argument("--full", action="store_true", help="all programs on all boards")
    parser.add_argument("--only", action="append", help="run only these")
    parser.add_argument("--seed", type=int, default=1800, help="of the losses; with the default one, no message of twenty hosts is lost more than twice in a row")
    parser.add_argument("--write", action="store_true", help="write table and figure of the documents")
    arguments = parser.parse_args()
    full = arguments.full or arguments.write or bool(arguments.only)
    images = build(full)
    host = Host(arguments.ebbtide.resolve(), arguments.seed, LOSS)
    if arguments.write:
        instants.write_figure(host, images[SERIAL, "instants"])
    runs = RUNS | (MORE_RUNS if full else {})
    chosen = {name: run for name, run in runs.items() if not arguments.only or name in arguments.only}
    figures: dict[str, dict[str, int]] = {}
    failed = 0
    # All at once: a run takes a second of a processor, and the rest is waiting.
    with concurrent.futures.ThreadPoolExecutor(max_workers=len(chosen)) as pool:
        started = {name: pool.submit(run, host, images) for name, run in chosen.items()}
        for name, running in started.items():
            try:
                figures[name] = running.result()
                print(f"{name:24} " + ", ".join(f"{what} {number}" for what, number in figures[name].items()))
            except Failed as failure:
                failed += 1
                print(f"{name:24} FAILED: {failure}")
    if failed:
        return 1
    if arguments.only:
        return 0
    measured = budgets.measure(images, figures)
    if arguments.write:
        budgets.write(measured)
        return 0
    return budgets.compare(measured)


if __name__ == "__main__":
    sys.exit(main())
