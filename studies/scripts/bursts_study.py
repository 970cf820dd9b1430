#!/usr/bin/env python3
"""Prints the tables of studies/bursts.md: transfers under every control and transport.

    cargo build --release -p ebbtide-cli && python3 studies/scripts/bursts_study.py > tables.md

Existing results under target/bursts-study are not computed again. REPS=N runs fewer
replications than the study's 10 for a quick look. EBBTIDE names another binary.
"""

import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
EBBTIDE = os.environ.get("EBBTIDE", str(ROOT / "target/release/ebbtide"))
REPS = os.environ.get("REPS", "10")
CACHE = ROOT / "target/bursts-study"
NETWORKS = ["nb-iot", "rcoap-wifi", "container-ship"]
BYTES = ["10000", "100000", "1000000"]
SIZES = ["10 kB", "100 kB", "1 MB"]
FAMILIES = ["default", "cocoa", "cocoa-plus", "linux-rto", "fasor", "fasor-token", "ebb"]
WINDOWS = [1, 4, 8]
# They set their own pace.
OTHERS = ["rcoap", "q-block", "tcp"]
# A message is 106 bytes on the wire over UDP. Everybody starts at once, and repeats alike.
COMMON = {"workload": "transfer", "workload.request_payload": "67",
          "workload.response_payload": "0", "workload.flow.start": "0 s", "max_retransmit": "4"}


def run(scenario, controls, **keys):
    """The cells of one `ebbtide run`, as its JSON has them, and the command."""
    command = ["run", scenario, "--cc", ",".join(controls), "--reps", REPS]
    for key, value in {**COMMON, **keys}.items():
        command += ["--set", f"{key}={value}"]
    out = ["--jobs", os.environ.get("JOBS", "1"), "--json", "--out", str(CACHE / scenario)]
    done = subprocess.run([EBBTIDE, *command, *out], check=True, capture_output=True, text=True)
    words = [f"'{word}'" if " " in word or "[" in word else word for word in command]
    return json.loads(done.stdout)["cells"], "    ebbtide " + " ".join(words) + "\n"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def number(value):
    return f"{value:.1f}" if value < 100 else f"{value:.0f}"


def finished(cell):
    """The median completion time and the share of the physical limit; a dash if it gave up."""
    flow = cell["flows"]["flows"][0]
    time, limit = cell["fct_s"]["median"], cell["fct_limit_s"]
    if flow["given_up"] > 1000:
        return "-"
    return f"{number(time)} ({100 * limit / time:.0f} %)"


def controls():
    windows = [f"{name}:nstart={window}" for name in FAMILIES for window in WINDOWS]
    return [*windows, *OTHERS]


def together(names):
    """`default:nstart=4`, `cocoa:nstart=4` in fewer words."""
    window = names[0].partition(":nstart=")[2]
    if len(names) == 1 or not window:
        return ", ".join(f"`{name}`" for name in names)
    return ", ".join(f"`{name.partition(':')[0]}`" for name in names) + f", NSTART {window}"


def alone(scenario):
    names = controls()
    cells, command = run(scenario, names, clients="1", **{"workload.flow.bytes": ",".join(BYTES)})
    by_size = [cells[i:i + len(names)] for i in range(0, len(cells), len(names))]
    rows = {}
    for place, name in enumerate(names):
        own = [group[place] for group in by_size]
        last = own[-1]["flows"]
        needless = sum(flow["unnecessary"] for flow in last["flows"])
        figures = (*map(finished, own), f"{last['retransmissions'][0]:.0f}", f"{needless:.0f}",
                   f"{100 * last['loss'][0]:.1f} %")
        # Controls that do the same where nothing is lost share a row.
        rows.setdefault(figures, []).append(name)
    rows = [[together(names), *figures] for figures, names in rows.items()]
    head = ["control", *SIZES, "retransmissions (1 MB)", "needless", "lost"]
    return table(head, rows) + "\n" + command


def beside(scenario):
    """A fasor flow of 10 kB beside each of the others, which moves 1 MB."""
    lone, first = run(scenario, ["fasor"], clients="1", **{"workload.flow.bytes": "10000"})
    before = lone[0]["fct_s"]["median"]
    names = ["default:nstart=1", *(f"{name}:nstart={window}" for window in (4, 8)
                                   for name in ("default", "cocoa", "fasor", "ebb")),
             *OTHERS]
    pairs = [f"{name}+fasor" for name in names]
    cells, command = run(scenario, pairs, clients="2",
                         **{"workload.flow.bytes": "[1000000,10000]"})
    rows = []
    for name, cell in zip(names, cells):
        after = cell["halves"][1]["fct_s"]["median"]
        flows = cell["flows"]
        victim = flows["flows"][1]
        rows.append([f"`{name}`", number(after), f"{100 * (after / before - 1):+.0f} %",
                     f"{flows['jain'][0]:.2f}", f"{victim['retransmissions']:.1f}",
                     f"{flows['flows'][0]['throughput_bps'] / 1e3:.1f}"])
    head = ["beside 1 MB under", "10 kB under `fasor`, s", f"against {number(before)} s alone",
            "Jain's index", "its retransmissions", "kbit/s of the 1 MB"]
    return table(head, rows) + "\n" + first + command


def main():
    for scenario in NETWORKS:
        print(f"### {scenario}\n\n{alone(scenario)}")
    for scenario in NETWORKS:
        print(f"### Beside `fasor`: {scenario}\n\n{beside(scenario)}", flush=True)


main()
