#!/usr/bin/env python3
"""Measures the tables and plots of studies/ebb-study-results.md again, with the present version of `ebb`:
target/ebb-study/results.md and target/ebb-study/img/ebb-*.svg.

    cargo build --release -p ebbtide-cli && python3 studies/scripts/ebb_study.py

Existing results under target/ebb-study are not computed again. REPS=N runs fewer
replications than the study (20, and 40 with errors) for a quick look; the tables say so.
EBBTIDE names another binary; SECTIONS=goals,mixed runs a part and leaves the other parts of the
document as they are.
"""

import json
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
EBBTIDE = os.environ.get("EBBTIDE", str(ROOT / "target/release/ebbtide"))
REPS = os.environ.get("REPS")
WANTED = os.environ.get("SECTIONS", "goals,seeds,mixed,lowpower,deployments,collapse,growth,copies,"
                        "first,dither,buffers")
ORDER = ["goals", "seeds", "buffers", "mixed", "lowpower", "deployments", "collapse", "growth",
         "copies", "first", "dither"]
CACHE = ROOT / "target/ebb-study"
MAIN = ["default", "cocoa", "fasor", "fasor-token", "ebb"]


def run(scenario, controls, reps, seed=None, **keys):
    """The cells of one `ebbtide run`, as its JSON has them, and the command."""
    name = "-".join([scenario, *(f"{k}={v}" for k, v in keys.items())])
    name = name.replace(",", "_").replace(" ", "").replace("/", "")
    command = ["run", scenario, "--cc", ",".join(controls), "--reps", str(REPS or reps)]
    for key, value in keys.items():
        command += ["--set", f"{key}={value}"]
    if seed:
        command += ["--seed", str(seed)]
        name += f"-seed{seed}"
    out = ["--jobs", os.environ.get("JOBS", "1"), "--json", "--out", str(CACHE / name)]
    done = subprocess.run([EBBTIDE, *command, *out], check=True, capture_output=True, text=True)
    shown = [f'"{word}"' if " " in word else word for word in command]
    return json.loads(done.stdout)["cells"], "    ebbtide " + " ".join(shown)


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
             for b in ("2500", "14100", "28200", "infinite") for n in (10, 50, 100, 200, 400)]
    return ("## All cells without errors\n\nFCT in seconds: median (90th percentile, "
            "maximum), five replications.\n\n" + compare(cells, 5))


def seeds():
    rows, commands = [], []
    for seed in range(1, 6):
        got, command = run("nb-iot", ["fasor", "ebb"], 40, seed=seed, workload="random", clients=10,
                           errors="high")
        rows.append([str(seed), *map(fct, got)])
        commands.append(command)
    return ("## Other seeds\n\nrandom, 10, high errors, the cell whose tail differs most between "
            "seeds; FCT in seconds.\n\n" + table(["seed", "fasor", "ebb"], rows) + "\n"
            + "\n".join(commands) + "\n")


def mixed():
    """Half and half. `fasor-token` beside `default` is there to compare `ebb` with."""
    rows, commands = [], []
    pairs = [("ebb", other) for other in ("default", "cocoa", "fasor", "fasor-token", "tcp")]
    for one, other in pairs + [("fasor-token", "default"), ("fasor-token", "fasor")]:
        for clients, buffer in ((400, "infinite"), (400, "28200"), (400, "2500")):
            keys = dict(clients=clients, buffer=buffer)
            got, command = run("nb-iot", [f"{one}+{other}"], 5, workload="mixed", **keys)
            alone, _ = run("nb-iot", [one, other], 5, workload="continuous", **keys)
            halves = {g["cc"].split(" beside ")[0]: g["fct_s"]["median"] for g in got[0]["halves"]}
            row = [f"{one} beside {other}, {clients}, {buffer}"]
            for name, cell in zip((one, other), alone):
                own = cell["fct_s"]["median"]
                row += [f"{own:.0f}", f"{halves[name]:.0f} ({100 * (halves[name] / own - 1):+.0f} %)"]
            rows.append(row)
            commands.append(command)
    head = ["A beside B", "A alone", "A mixed", "B alone", "B mixed"]
    return ("## Sharing a link, half and half\n\nMedian FCT in seconds, continuous, five "
            "replications. Below `ebb`'s rows what `fasor-token` does in its place.\n\n"
            + table(head, rows) + "\n" + "\n".join(commands) + "\n")


LOW_POWER = ["default", "cocoa-plus", "fasor", "fasor-token", "ebb"]


def lowpower():
    """Loss and time per completed exchange in 802.15.4; a star where ebb is the worse of either."""
    rows, commands = [], []
    cells = [("lln-grid", dict(workload="monitoring", n=n, load=load, duration="1 h"))
             for n in (3, 4, 5, 6) for load in ("0.5 kbit/s", "1 kbit/s", "2 kbit/s", "3 kbit/s")]
    cells += [("lln-grid", dict(workload="events", n=n, duration="1 h")) for n in (3, 4, 5, 6)]
    cells += [("lln-cloud", dict(workload=w, duty_cycle=d)) for d in ("off", "contikimac")
              for w in ("baseline", "many-to-many", "burst")]
    for scenario, keys in cells:
        got, command = run(scenario, LOW_POWER, 3, **keys)
        values = {}
        for cell in got:
            ended = max(cell["completed"] + cell["failed"], 1)
            loss = cell["mesh"]["loss"][0] if cell["mesh"]["messages"] else cell["failed"] / ended
            values[cell["cc"]] = (100 * loss, cell["mesh"]["exchange_s"][0])
        best = [min(values["default"][i], values["fasor"][i]) for i in (0, 1)]
        worse = [values["ebb"][i] > 1.05 * best[i] + (0.1, 0.005)[i] for i in (0, 1)]
        mark = {(True, True): "loss, time", (True, False): "loss", (False, True): "time"}
        rows.append([f"{scenario}, " + ", ".join(str(v) for v in keys.values() if v != "1 h"),
                     *(f"{values[c][0]:.2f} %, {values[c][1]:.2f} s" for c in LOW_POWER),
                     mark.get(tuple(worse), "")])
        commands.append(command)
    return ("## Low power\n\nMessages lost (exchanges given up in lln-cloud) and mean time per completed "
            "exchange, three replications, in lln-grid of an hour. The last column says in what `ebb` is "
            "worse than the better of `default` and `fasor` by more than 5 % and a tenth of a percent, "
            "or 5 ms.\n\n"
            + table(["cell", *LOW_POWER, "worse in"], rows) + "\n" + "\n".join(commands) + "\n")


def collapse():
    rows, commands = [], []
    for workload, clients in (("random", 400), ("random", 1000), ("continuous", 1000)):
        got, command = run("nb-iot", MAIN, 1, workload=workload, clients=clients)
        limit = f"{got[0]['fct_limit_s']:.0f}"
        rows.append([f"{workload}, {clients}", limit, *(f"{c['fct_s']['median']:.0f}" for c in got)])
        commands.append(command)
    return ("## More senders than the queue can hold in a timeout\n\nMedian FCT in seconds, infinite "
            "buffer, one replication.\n\n" + table(["cell", "limit", *MAIN], rows) + "\n"
            + "\n".join(commands) + "\n")


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
    plot(CACHE / f"img/ebb-{key}.svg", f"Median FCT over the best of the line: {title}", unit,
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
    cells = [("container-ship", {}), ("building", {}), ("rcoap-wifi", dict(workload="continuous")),
             ("rcoap-wifi", dict(workload="continuous", clients=30, wifi_loss=0.2)),
             ("rcoap-wifi", dict(interval="0 s"))]
    for scenario, keys in cells:
        got, command = run(scenario, MAIN, 3, **keys)
        for cell in got:
            u, d = cell["unnecessary_retransmissions"], cell["exchange_duration_s"]
            done = fct(cell)
            if "flows" in cell:
                done = f"{cell['flows']['delivered'][0]:.0f} delivered"
            rows.append([", ".join([scenario, *map(str, keys.values())]), cell["cc"], done,
                         f"{d['median']:.3f} ({d['p90']:.3f}, {d['max']:.1f})",
                         f"{u['median']:.0f} / {u['max']:.0f}", str(cell["failed"])])
        commands.append(command)
    head = ["scenario", "control", "FCT, s", "exchange, s", "unnecessary", "failed"]
    return ("## Deployments\n\nThree replications.\n\n" + table(head, rows) + "\n"
            + "\n".join(commands) + "\n")


def main():
    CACHE.mkdir(parents=True, exist_ok=True)
    (CACHE / "img").mkdir(exist_ok=True)
    note = f"{REPS} replications per cell (a quick look)." if REPS else (
        "Goals: 20 replications per cell, 40 with errors; the rest as stated there. Seed 1 unless stated otherwise.")
    head = (f"# Ebb: measured\n\nWritten by `python3 studies/scripts/ebb_study.py`. {note} "
            "studies/ebb-study.md interprets the tables of version 1.\n")
    document = CACHE / "results.md"
    parts = re.split(r"\n(?=## )", document.read_text())[1:] if document.exists() else []
    kept = dict(zip(ORDER, parts)) if len(parts) == len(ORDER) else {}
    for name in WANTED.split(","):
        print(name, flush=True)
        kept[name] = globals()[name]()
        document.write_text("\n".join([head, *(kept[part] for part in ORDER if part in kept)]))


main()
