#!/usr/bin/env python3
"""Every control on three long paths, as a Markdown table.

    studies/scripts/long_paths.py EBBTIDE [REPS]

Each path is run with the first timeout of RFC 7252 and with one above its longest round trip. An entry is
the share delivered and the transmissions per exchange that was asked for, of which one is necessary.
"""

import json
import subprocess
import sys

PATHS = [
    ("edrx", [], ["2 s", "45 s"]),
    ("store-and-forward", [], ["2 s", "270 min"]),
    ("mars", ["delay=4 min"], ["2 s", "12 min"]),
    ("mars", ["delay=24 min"], ["2 s", "1 h"]),
]


def cells(program, reps, scenario, settings):
    sets = [argument for setting in settings for argument in ("--set", setting)]
    call = [program, "run", scenario, *sets, "--cc", "all", "--reps", reps, "--json"]
    document = json.loads(subprocess.run(call, check=True, capture_output=True, text=True).stdout)
    return {cell["cc"]: entry(cell) for cell in document["cells"]}


def entry(cell):
    sent = cell["packets"]["up"]["sent"] / cell["asked"]
    return f"{100 * cell['delivered']:.0f} %, {sent:.2f}"


def main(program, reps="5"):
    columns, head = [], []
    for scenario, settings, timeouts in PATHS:
        for timeout in timeouts:
            columns.append(cells(program, reps, scenario, [*settings, f"ack_timeout={timeout}"]))
            head.append(" ".join([scenario, *settings, timeout]))
    print("| control | " + " | ".join(head) + " |")
    print("|---" * (len(head) + 1) + "|")
    for control in columns[0]:
        print(f"| `{control}` | " + " | ".join(column[control] for column in columns) + " |")


if __name__ == "__main__":
    main(*sys.argv[1:])
