#!/usr/bin/env python3
"""Regenerates the tables and plots of docs/ebb-study.md: docs/ebb-study-results.md and
docs/img/ebb-*.svg.

    cargo build --release -p ebbtide-cli && python3 scripts/ebb_study.py

What was run before is kept under target/ebb-study and not run again. REPS=N runs fewer
replications than the study (20, and 40 with errors) for a quick look; the tables say so.
EBBTIDE names another binary; SECTIONS=goals,mixed runs a part.
"""

import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
EBBTIDE = os.environ.get("EBBTIDE", str(ROOT / "target/release/ebbtide"))
REPS = os.environ.get("REPS")
WANTED = os.environ.get("SECTIONS", "goals,buffers,mixed,growth,copies,first,dither,deployments")
CACHE = ROOT / "target/ebb-study"
MAIN = ["default", "cocoa", "fasor", "fasor-token", "ebb"]


def run(scenario, controls, reps, **keys):
    """The cells of one `ebbtide run`, as its JSON has them, and the command."""
    name = "-".join([scenario, *(f"{k}={v}" for k, v in keys.items())]).replace(",", "_")
    command = ["run", scenario, "--cc", ",".join(controls), "--reps", str(REPS or reps)]
    for key, value in keys.items():
        command += ["--set", f"{key}={value}"]
    out = ["--jobs", os.environ.get("JOBS", "1"), "--json", "--out", str(CACHE / name)]
    done = subprocess.run([EBBTIDE, *command, *out], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["cells"], "    ebbtide " + " ".join(command)


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def fct(cell):
    f = cell["fct_s"]
    return f"{f['median']:.1f} ({f['p90']:.0f}, {f['max']:.0f})"


def plot(path, title, unit, series):
    """Medians over a setting, one line per cell, as multiples of the line's own first value."""
    colours = ["#0b6e99", "#d1495b", "#66a182", "#8d6a9f", "#edae49", "#444444"]
    width, height, left, top, bottom = 640, 300, 50, 30, 45
    values = [y for _, points in series for _, y in points]
    xs = [x for _, points in series for x, _ in points]
    low, high = min(values) * 0.98, max(values) * 1.02
    spread = (max(xs) - min(xs)) or 1
    fx = lambda x: left + (x - min(xs)) / spread * (width - left - 190)
    fy = lambda y: height - bottom - (y - low) / (high - low) * (height - top - bottom)
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
           f'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="#fff"/>'
           f'<text x="{left}" y="18" font-size="13">{title}</text>'
           f'<text x="{left}" y="{height - 8}">{unit}</text>']
    for x in sorted(set(xs)):
        svg.append(f'<text x="{fx(x):.0f}" y="{height - 26}" text-anchor="middle">{x:g}</text>')
    for i in range(5):
        y = low + (high - low) * i / 4
        svg.append(f'<text x="{left - 6}" y="{fy(y) + 4:.0f}" text-anchor="end">{y:.2f}</text>'
                   f'<line x1="{left}" x2="{width - 190}" y1="{fy(y):.0f}" y2="{fy(y):.0f}" '
                   f'stroke="#ddd"/>')
    for n, (name, points) in enumerate(series):
        colour = colours[n % len(colours)]
        path_d = " ".join(f"{fx(x):.1f},{fy(y):.1f}" for x, y in points)
        svg.append(f'<polyline points="{path_d}" fill="none" stroke="{colour}" stroke-width="2"/>'
                   f'<text x="{width - 180}" y="{40 + 16 * n}" fill="{colour}">{name}</text>')
    path.write_text("\n".join(svg + ["</svg>"]) + "\n")


GOALS = [
    ("random", 400, "infinite", "none"), ("random", 100, "infinite", "none"),
    ("random", 400, "28200", "none"), ("continuous", 400, "infinite", "none"),
    ("continuous", 400, "2500", "none"), ("random", 400, "2500", "none"),
    ("continuous", 10, "infinite", "low"), ("random", 10, "infinite", "low"),
    ("continuous", 10, "infinite", "medium"), ("random", 10, "infinite", "medium"),
    ("continuous", 10, "infinite", "high"), ("random", 10, "infinite", "high"),
]


def compare(cells, reps=None):
    rows, commands, unnecessary = [], [], []
    for workload, clients, buffer, errors in cells:
        n = reps or (40 if errors != "none" else 20)
        got, command = run("nb-iot", MAIN, n, workload=workload, clients=clients, buffer=buffer,
                           errors=errors)
        name = f"{workload}, {clients}, {buffer}" + ("" if errors == "none" else f", {errors}")
        rows.append([name, *map(fct, got)])
        u = [f"{c['unnecessary_retransmissions'][k]:.0f}" for c in got for k in ("median", "max")]
        unnecessary.append([name, *(f"{a} / {b}" for a, b in zip(u[::2], u[1::2]))])
        commands.append(command)
    return (table(["cell", *MAIN], rows) + "\nUnnecessary retransmissions per client, median / most:"
            "\n\n" + table(["cell", *MAIN], unnecessary) + "\n" + "\n".join(commands) + "\n")


def goals():
    return "## Goals\n\nFCT in seconds: median (90th percentile, maximum).\n\n" + compare(GOALS)


def buffers():
    cells = [(w, n, b, "none") for w in ("continuous", "random")
             for b in ("2500", "14100", "28200", "infinite") for n in (1, 10, 50, 100, 200, 400)]
    return ("## All cells without errors\n\nFCT in seconds: median (90th percentile, "
            "maximum), five replications.\n\n" + compare(cells, 5))


def mixed():
    rows, commands = [], []
    for other in ("default", "cocoa", "fasor", "fasor-token"):
        for clients, buffer in ((400, "infinite"), (400, "28200"), (400, "2500")):
            together = f"ebb+{other}"
            keys = dict(clients=clients, buffer=buffer)
            got, command = run("nb-iot", [together], 5, workload="mixed", **keys)
            alone, _ = run("nb-iot", ["ebb", other], 5, workload="continuous", **keys)
            groups = {g["cc"].split(" beside ")[0]: g["fct_s"]["median"] for g in got[0]["halves"]}
            own = {c["cc"]: c["fct_s"]["median"] for c in alone}
            cell = [f"{other}, {clients}, {buffer}"]
            for name in ("ebb", other):
                with_other = groups.get(name)
                cell.append(f"{own[name]:.0f}")
                cell.append("" if with_other is None else
                            f"{with_other:.0f} ({100 * (with_other / own[name] - 1):+.0f} %)")
            rows.append(cell)
            commands.append(command)
    head = ["ebb beside", "ebb alone", "ebb mixed", "other alone", "other mixed"]
    return ("## Sharing a link, half and half\n\nMedian FCT in seconds, continuous, five replications.\n\n"
            + table(head, rows) + "\n" + "\n".join(commands) + "\n")


SWEEP = [("random", 400, "infinite", "none"), ("continuous", 400, "infinite", "none"),
         ("random", 400, "2500", "none"), ("random", 10, "infinite", "high"),
         ("continuous", 10, "infinite", "high")]


def sweep(key, title, unit, values, name=str):
    rows, series = [], []
    for workload, clients, buffer, errors in SWEEP:
        controls = [f"ebb:{key}={name(v)}" for v in values]
        got, _ = run("nb-iot", controls, 40 if errors != "none" else 5, workload=workload,
                     clients=clients, buffer=buffer, errors=errors)
        cell = f"{workload}, {clients}, " + (buffer if errors == "none" else f"{errors} errors")
        rows.append([cell, *map(fct, got)])
        medians = [c["fct_s"]["median"] for c in got]
        series.append((cell, [(v, m / min(medians)) for v, m in zip(values, medians)]))
    plot(ROOT / f"docs/img/ebb-{key}.svg", f"Median FCT over the best of the line: {title}", unit,
         series)
    return (f"## Sensitivity: {title}\n\n" + table(["cell", *map(name, values)], rows)
            + f"\n![{title}](img/ebb-{key}.svg)\n")


def growth():
    return sweep("probe-growth", "growth of the interval after the first probe", "factor",
                 [2, 3, 4, 5, 6, 7, 9, 12])


def copies():
    return sweep("copies", "short repeats while no queue stands", "copies", [0, 1, 2, 3, 4])


def first():
    return sweep("initial-rto", "the first timeout while nothing is known", "seconds",
                 [1.0, 1.25, 1.5, 2.0, 3.0], lambda v: f"{v:g}s")


def dither():
    return sweep("dither", "dither", "percent of SRTT", [0, 5, 10, 25, 50, 100])


def deployments():
    rows, commands = [], []
    for scenario in ("container-ship", "building"):
        got, command = run(scenario, MAIN, 3)
        for cell in got:
            u = cell["unnecessary_retransmissions"]
            rows.append([scenario, cell["cc"], fct(cell), f"{u['median']:.0f} / {u['max']:.0f}",
                         str(cell["failed"])])
        commands.append(command)
    head = ["scenario", "control", "FCT, s", "unnecessary", "failed"]
    return ("## Deployments\n\nThree replications.\n\n" + table(head, rows) + "\n"
            + "\n".join(commands) + "\n")


def main():
    CACHE.mkdir(parents=True, exist_ok=True)
    (ROOT / "docs/img").mkdir(exist_ok=True)
    note = f"{REPS} replications per cell (a quick look)." if REPS else (
        "Goals: 20 replications per cell, 40 with errors; the rest as said there. Seed 1.")
    parts = [f"# Ebb: measured\n\nWritten by `python3 scripts/ebb_study.py`. {note} What it means: "
             "[ebb-study.md](ebb-study.md).\n"]
    for name in WANTED.split(","):
        print(name, flush=True)
        parts.append(globals()[name]())
        (ROOT / "docs/ebb-study-results.md").write_text("\n".join(parts))


main()
