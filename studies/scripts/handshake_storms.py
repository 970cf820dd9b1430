#!/usr/bin/env python3
"""Run the study of studies/handshake-storms.md and print its tables.

    python3 studies/scripts/handshake_storms.py --ebbtide target/release/ebbtide [--reps 10] [--figure FILE.svg]
"""

import argparse
import json
import subprocess
import sys
import tempfile

DEVICES = [50, 100, 200, 400]
LTE_M = {"network.up.rate": "375 kbit/s", "network.down.rate": "300 kbit/s",
         "network.up.delay": "60 ms", "network.down.delay": "60 ms"}
# Name, control, settings of [security].
WAYS = [
    ("RFC 6347: 1 s, doubled", "default", {"timers": "rfc6347"}),
    ("RFC 7925: 9 s, doubled", "default", {"timers": "rfc7925"}),
    ("`default`, server 60 s", "default", {"timers": "control"}),
    ("`fasor-token`, server 60 s", "fasor-token", {"timers": "control"}),
    ("`ebb`, server 60 s", "ebb", {"timers": "control"}),
    ("9 s, doubled; server 60 s", "default", {"timers": "rfc7925", "server_timeout": "60 s"}),
]
RETURNS = ["resumption", "connection-id"]


def run(options, control, settings):
    """One cell: its figures from the JSON document."""
    with tempfile.TemporaryDirectory() as folder:
        command = [options.ebbtide, "run", "handshake-storm", "--cc", control, "--json",
                   "--reps", str(options.reps), "--out", folder]
        for key, value in settings.items():
            command += ["--set", f"{key}={value}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}\n{done.stderr}")
        return json.loads(done.stdout)["cells"][0]


def row(options, name, control, settings):
    cell = run(options, control, settings)
    by = cell["delivered_by_s"]
    security = cell.get("security", {})
    clients = int(settings["clients"])
    last = by["100"]
    runs = options.reps * clients
    shown = [by["50"], by["99"], last]
    times = ["never" if value is None else f"{value:.0f} s" for value in shown]
    repeated = (security.get("packets_up", 0) + security.get("packets_down", 0)) / runs
    size = cell["bytes_per_delivered"]
    return {"name": name, "clients": clients, "delivered": cell["delivered"], "times": times,
            "last": last, "failed": security.get("failed", 0) / runs, "packets": repeated,
            "bytes": size}


def table(title, rows):
    print(f"\n### {title}\n")
    print("| timers | 50 % back after | 99 % | all | reported | handshakes failed, per device "
          "| datagrams of handshakes, per device | bytes per report |")
    print("|---|---|---|---|---|---|---|---|")
    for r in rows:
        fifty, most, last = r["times"]
        size = "-" if r["bytes"] is None else f"{r['bytes']:.0f}"
        print(f"| {r['name']} | {fifty} | {most} | {last} | {100 * r['delivered']:.1f} % "
              f"| {r['failed']:.2f} | {r['packets']:.1f} | {size} |")
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ebbtide", default="target/release/ebbtide")
    parser.add_argument("--reps", type=int, default=10)
    parser.add_argument("--figure")
    options = parser.parse_args()

    curves = {}
    for devices in DEVICES:
        rows = []
        for name, control, security in WAYS:
            rows.append(row(options, name, control, {"clients": devices, **security}))
            curves.setdefault(name, []).append(rows[-1]["last"])
        table(f"NB-IoT, {devices} devices, full handshakes", rows)
    for returns in RETURNS:
        rows = [row(options, name, control, {"clients": 400, "return": returns, **security})
                for name, control, security in WAYS[1:]]
        table(f"NB-IoT, 400 devices, {returns}", rows)
    rows = [row(options, name, control, {"clients": 400, "errors": "low", **security})
            for name, control, security in WAYS[1:]]
    table("NB-IoT, 400 devices, full handshakes, 2 % of the packets lost", rows)
    rows = [row(options, name, control, {"clients": 400, **LTE_M, **security})
            for name, control, security in WAYS]
    table("LTE-M, 400 devices, full handshakes", rows)
    if options.figure:
        figure(options.figure, curves)


def figure(path, curves):
    """The time until the last device is back, over the number of devices."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "ebbtide"
    from matplotlib import pyplot

    _, axes = pyplot.subplots(figsize=(7, 4.3), layout="constrained")
    marks = "osDv^x"
    for mark, (name, times) in zip(marks, curves.items(), strict=True):
        points = [(d, t) for d, t in zip(DEVICES, times, strict=True) if t is not None]
        axes.plot(*zip(*points, strict=True), marker=mark, label=name.replace("`", ""))
    axes.set_xlabel("devices that return within 5 s")
    axes.set_ylabel("time until the last one has reported, s")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend(title="flights repeated by")
    pyplot.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
