#!/usr/bin/env python3
"""The table and the figure of studies/queue-mode.md.

    cargo run --release -p ebbtide-testnet --example queue_mode > target/queue-mode.csv
    studies/scripts/queue_mode.py target/queue-mode.csv [FIGURE.svg]
"""

import csv
import sys
from pathlib import Path

COLOURS = {1: "#b2182b", 2: "#ef8a62", 4: "#2166ac"}
SIDE, LEFT, TOP, BETWEEN = 240, 46, 40, 24


def table(rows):
    seconds = sorted({int(row["listens_s"]) for row in rows})
    print("| network, control | NSTART | " + " | ".join(f"{one} s" for one in seconds) + " |")
    print("|---|---|" + "---|" * len(seconds))
    for key in dict.fromkeys((row["network"], row["control"], row["nstart"]) for row in rows):
        entries = [row for row in rows if (row["network"], row["control"], row["nstart"]) == key]
        cells = [f"{float(row['delivered_percent']):.0f} %, {float(row['radio_on_s_per_wake']):.0f} s" for row in entries]
        print(f"| {key[0]}, `{key[1]}` | {key[2]} | " + " | ".join(cells) + " |")


def panel(rows, place, network):
    """Delivered commands over the time that the radio is on, a line for each NSTART, under `ebb`."""
    x0, longest = LEFT + place * (SIDE + BETWEEN), max(float(row["radio_on_s_per_wake"]) for row in rows)
    x = lambda seconds: x0 + SIDE * seconds / longest
    y = lambda percent: TOP + SIDE * (100 - percent) / 50
    out = [f'<rect x="{x0}" y="{TOP}" width="{SIDE}" height="{SIDE}" fill="none" stroke="#999"/>']
    out.append(f'<text x="{x0 + SIDE / 2}" y="{TOP - 8}" text-anchor="middle">{network}</text>')
    for seconds in (0, 50, 100, 150):
        out.append(f'<text x="{x(seconds):.0f}" y="{TOP + SIDE + 16}" text-anchor="middle">{seconds}</text>')
    if place == 0:
        out += [f'<text x="{x0 - 6}" y="{y(one) + 4:.0f}" text-anchor="end">{one} %</text>' for one in (50, 75, 100)]
    for nstart, colour in COLOURS.items():
        line = [row for row in rows if row["network"] == network and row["control"] == "ebb" and int(row["nstart"]) == nstart]
        points = [(x(float(row["radio_on_s_per_wake"])), y(max(50, float(row["delivered_percent"])))) for row in line]
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{colour}"/>' for a, b in points]
    return out


def figure(rows, path):
    networks = list(dict.fromkeys(row["network"] for row in rows))
    width, height = LEFT + len(networks) * (SIDE + BETWEEN), TOP + SIDE + 72
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">']
    svg.append(f'<rect width="{width}" height="{height}" fill="#fff"/>')
    for place, network in enumerate(networks):
        svg += panel(rows, place, network)
    svg.append(f'<text x="{width / 2}" y="{TOP + SIDE + 36}" text-anchor="middle">seconds of radio for each wake</text>')
    for place, (nstart, colour) in enumerate(COLOURS.items()):
        svg.append(f'<text x="{LEFT + 110 * place}" y="{height - 10}" fill="{colour}">NSTART {nstart}</text>')
    path.write_text("\n".join([*svg, "</svg>"]) + "\n", encoding="utf-8")


def main(source, target="studies/img/queue-mode.svg"):
    with open(source, encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    table(rows)
    figure(rows, Path(target))


if __name__ == "__main__":
    main(*sys.argv[1:])
