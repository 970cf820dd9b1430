#!/usr/bin/env python3
"""The tables and the figure of studies/what-a-device-pays.md.

    cargo run --release -p ebbtide-testnet --example what_a_device_pays > target/what-a-device-pays.csv
    studies/scripts/what_a_device_pays.py target/what-a-device-pays.csv [FIGURE.svg]
"""

import csv
import math
import sys
from pathlib import Path

COLOURS = {"none": "#999999", "DTLS connection ID": "#92c5de", "OSCORE": "#2166ac",
           "DTLS handshake": "#ef8a62", "OSCORE after EDHOC": "#b2182b"}
LEFT, TOP, BAR, SIDE, BETWEEN = 140, 36, 26, 170, 20


def number(row, name):
    return float(row[name])


def figures(value):
    """Three of them, or all in front of the point."""
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def airtime_lora(length):
    """Seconds of a frame with SF9 and 125 kHz (Semtech, AN1200.13), 13 bytes of LoRaWAN and 2 of SCHC in front."""
    symbols = 8 + max(math.ceil((8 * (length + 15) - 4 * 9 + 44) / (4 * 9)) * 5, 0)
    return (12.25 + symbols) * 2**9 / 125_000


def airtime_802154(length):
    """Seconds of a frame at 250 kbit/s: 6 bytes of the physical layer, 23 of the MAC, 7 of compressed headers."""
    return (length + 36) * 8 / 250_000


#: By network: the payload of one frame, its time, and the power of the radio that sends and receives it, W
#: (CC2420 and SX1276, as in the testbed).
RADIOS = {"802.15.4": (80, airtime_802154, 0.0522, 0.0564), "LoRaWAN": (113, airtime_lora, 0.0957, 0.03795)}


def millijoules(row):
    """The energy of the radio while bits are sent and received; that of listening between them is not in it."""
    if row["network"] not in RADIOS:
        return None
    room, airtime, *powers = RADIOS[row["network"]]
    total = 0.0
    for way, power in zip(("up", "down"), powers):
        packets, length = number(row, f"packets_{way}"), number(row, f"bytes_{way}")
        each = length / packets
        whole, rest = divmod(each, room)
        total += packets * power * (whole * airtime(room) + (airtime(rest) if rest else 0))
    return 1000 * total


def found(rows, **wanted):
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def costs(rows):
    print("| security | packets | bytes up | bytes down | mJ, 802.15.4 | mJ, LoRaWAN |\n|---|---|---|---|---|---|")
    for row in found(rows, network="nb-iot", loss_percent="0", devices="1"):
        energy = [millijoules(found(rows, network=network, loss_percent="0", devices="1", security=row["security"])[0])
                  for network in RADIOS]
        packets = number(row, "packets_up") + number(row, "packets_down")
        print(f"| {row['security']} | {packets:.0f} | {number(row, 'bytes_up'):.0f} | {number(row, 'bytes_down'):.0f} | "
              + " | ".join(f"{value:.3g}" for value in energy) + " |")


def times(row):
    """The median and the last answer; in the place of one that there was not, the share of devices that have an answer."""
    share = f"{math.floor(100 * number(row, 'answered'))} %"
    if not row["median_s"]:
        return share
    return f"{figures(number(row, 'median_s'))}, {figures(number(row, 'last_s')) if row['last_s'] else share}"


def seconds(rows, devices):
    """The median and the slowest answer, by network and loss."""
    names = list(COLOURS)
    print(f"\n{devices}:\n\n| network, loss | " + " | ".join(names) + " |\n|---|" + "---|" * len(names))
    for network, loss in dict.fromkeys((row["network"], row["loss_percent"]) for row in rows):
        of = {row["security"]: row for row in found(rows, network=network, loss_percent=loss, devices=devices)}
        if of:
            print(f"| {network}, {loss} % | " + " | ".join(times(of[name]) for name in names) + " |")


#: By network, bit/s to the server and back.
RATES = {"nb-iot, edrx": (60_000, 30_000), "802.15.4": (100_000, 100_000), "LoRaWAN": (1_760, 1_760)}
HEADERS = 28


def least(rows, devices):
    """The seconds in which the slower way transmits the packets of so many devices once, each with its headers."""
    names = list(COLOURS)
    of = {row["security"]: row for row in found(rows, network="nb-iot", loss_percent="0", devices="1")}
    print(f"\n| {devices} devices | " + " | ".join(names) + " |\n|---|" + "---|" * len(names))
    for network, rates in RATES.items():
        cells = []
        for name in names:
            bits = [8 * devices * (number(of[name], f"bytes_{way}") + HEADERS * number(of[name], f"packets_{way}")) for way in ("up", "down")]
            cells.append(figures(max(sent / rate for sent, rate in zip(bits, rates))))
        print(f"| {network} | " + " | ".join(cells) + " |")


def energy_of_storms(rows, devices):
    """The millijoules of each of the devices, by loss, of storms that end."""
    names = list(COLOURS)
    print("\n| mJ of each, loss | " + " | ".join(names) + " |\n|---|" + "---|" * len(names))
    storms = [row for row in rows if row["devices"] == devices and row["network"] in RADIOS]
    for network, loss in dict.fromkeys((row["network"], row["loss_percent"]) for row in storms):
        of = {row["security"]: row for row in found(storms, network=network, loss_percent=loss)}
        cells = [f"{millijoules(of[name]):.3g}" if of[name]["last_s"] else "–" for name in names]
        print(f"| {network}, {loss} % | " + " | ".join(cells) + " |")


def figure(rows, path):
    """Bytes and seconds of one device, and of 400 at once on nb-iot."""
    panels = {
        "bytes until the answer": (lambda row: number(row, "bytes_up") + number(row, "bytes_down"), "nb-iot", "1"),
        "seconds on nb-iot, one device": (lambda row: number(row, "median_s"), "nb-iot", "1"),
        "on LoRaWAN": (lambda row: number(row, "median_s"), "LoRaWAN", "1"),
        "on nb-iot, 400 at once": (lambda row: number(row, "median_s"), "nb-iot", "400"),
    }
    width, height = LEFT + len(panels) * (SIDE + BETWEEN), TOP + len(COLOURS) * BAR + 34
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">']
    svg.append(f'<rect width="{width}" height="{height}" fill="#fff"/>')
    for place, (title, (value, network, devices)) in enumerate(panels.items()):
        x0 = LEFT + place * (SIDE + BETWEEN)
        svg.append(f'<text x="{x0}" y="{TOP - 12}">{title}</text>')
        of = {row["security"]: value(row) for row in found(rows, network=network, loss_percent="0", devices=devices)}
        for line, (name, colour) in enumerate(COLOURS.items()):
            y, long = TOP + line * BAR, SIDE * 0.75 * of[name] / max(of.values())
            if place == 0:
                svg.append(f'<text x="{LEFT - 8}" y="{y + 14}" text-anchor="end">{name}</text>')
            svg.append(f'<rect x="{x0}" y="{y}" width="{max(long, 1):.1f}" height="18" fill="{colour}"/>')
            svg.append(f'<text x="{x0 + long + 4:.1f}" y="{y + 14}">{of[name]:.3g}</text>')
    svg.append(f'<text x="{LEFT}" y="{height - 12}">Devices wake up with another address and ask one question; no losses; medians.</text>')
    path.write_text("\n".join([*svg, "</svg>"]) + "\n", encoding="utf-8")


def main(source, target="studies/img/what-a-device-pays.svg"):
    with open(source, encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    costs(rows)
    for devices in ("1", "40", "400"):
        seconds(rows, devices)
    for devices in (40, 400):
        least(rows, devices)
    energy_of_storms(rows, "400")
    figure(rows, Path(target))


if __name__ == "__main__":
    main(*sys.argv[1:])
