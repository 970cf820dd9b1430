"""`ebbtide fit` on captures of the emulator: random known networks, real sockets, real time.

    fit_emulated.py EBBTIDE FOLDER [--networks 20] [--seed 1] [--jobs 2]      needs root or user namespaces

Each network is drawn from a seed of its own: its scenario, the emulator's capture of both ends and the fit
are kept in FOLDER, and a capture that is there already is not taken again. The library's client and server
talk through the network for at most 90 s. The table compares the fitted figures with the true ones: both
directions must lie within the bounds, and a figure that is reported as not known counts if its bound holds.
"""

import argparse
import concurrent.futures
import json
import math
import pathlib
import random
import subprocess
import sys

REQUEST, RESPONSE = 38, 94  # bytes on the wire
LONGEST = 90  # seconds of traffic
BOUNDS = ("rate 10 %", "round trip 5 %", "buffer x1.5", "loss 2 points")


def draw(seed: int) -> dict:
    """A network: rates in bit/s, delays in seconds, buffers in bytes (None: no bound), losses as shares."""
    luck = random.Random(seed)
    between = lambda low, high: math.exp(luck.uniform(math.log(low), math.log(high)))
    down = round(between(5e3, 5e5))
    up = round(down * between(1, 4))
    delay = between(0.04, 3) / 2 * luck.uniform(0.6, 1.4)
    delays = [round(delay, 4), round(delay * luck.uniform(0.5, 2), 4)]
    clients = round(between(3, 40))
    buffer = luck.choice([None, round(between(600, 20_000)), round(between(600, 20_000))])
    loss = luck.choice([0.0, 0.0, 0.02, 0.08])
    idle = sum(delays) + 8 * (REQUEST / up + RESPONSE / down)
    each = max(idle, 8 * clients * RESPONSE / down)
    exchanges = max(5, min(300, round(0.6 * LONGEST / each)))
    return {
        "seed": seed, "rates": [up, down], "delays": delays, "buffer": buffer, "loss": loss,
        "clients": clients, "exchanges": exchanges, "idle": idle,
    }  # fmt: skip


def scenario(network: dict) -> str:
    up, down = network["rates"]
    one, other = network["delays"]
    buffer = "infinite" if network["buffer"] is None else f"{network['buffer']} B"
    direction = '[network.{}]\nrate = "{} bit/s"\ndelay = ["{:.1f} ms", "{:.1f} ms"]\nbuffer = "{}"\n'
    links = direction.format("up", up, 1e3 * one, 1e3 * one, buffer)
    links += direction.format("down", down, 1e3 * other, 1e3 * other, buffer)
    errors = f'[errors.own]\nkind = "independent"\naverage = {network["loss"]}\n' if network["loss"] else ""
    return (
        f'name = "emulated"\ntitle = "Random network {network["seed"]}"\n[network]\nheader = 28\nmtu = 296\n'
        f'errors = "{"own" if errors else "none"}"\n{links}[clients]\ncount = {network["clients"]}\n'
        f'[workload]\nkind = "continuous"\nexchanges = {network["exchanges"]}\npath = "value"\n'
        f"response_payload = 60\n[coap]\nmax_retransmit = 20\n[control.default]\nbound = \"60s\"\n{errors}"
    )


def emulate(ebbtide: str, folder: pathlib.Path, network: dict, subnet: str) -> None:
    file = folder / f"{network['seed']}.toml"
    capture = file.with_suffix(".pcapng")
    file.write_text(scenario(network))
    if capture.exists():
        return
    command = [
        ebbtide, "emulate", "--link", file, "--seed", str(network["seed"]), "--subnet", subnet, "--json",
        "--pcap", capture, "--server", f"exec '{ebbtide}' serve --scenario '{file}'", "--",
        "timeout", str(LONGEST), ebbtide, "bench", f"coap://{subnet}.0.1/value", "--scenario", file, "--cc", "default",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True)
    file.with_suffix(".log").write_text(done.stdout + done.stderr)


def compare(ebbtide: str, folder: pathlib.Path, network: dict) -> list[bool]:
    file = folder / f"{network['seed']}.pcapng"
    done = subprocess.run([ebbtide, "fit", file, "--json"], capture_output=True, text=True)
    if done.returncode:
        print(f"{network['seed']:>4} {done.stderr.strip()}")
        return [False] * len(BOUNDS)
    document = json.loads(done.stdout)
    figures = {figure["key"]: figure for figure in document["figures"]}
    line, rate_within, buffer_within = [], True, True
    for side, rate in zip(("up", "down"), network["rates"]):
        found = figures[f"network.{side}.rate"]
        value = found["value"] if found["known"] else found["low"] or 0
        rate_within &= abs(value / rate - 1) <= 0.1 if found["known"] else value <= 1.1 * rate
        line.append(f"{side} {rate}/{'' if found['known'] else '>'}{value:.0f}")
        found, real = figures[f"network.{side}.buffer"], network["buffer"] or math.inf
        value = found["value"] if found["known"] else found["low"] or 0
        within = 1 / 1.5 <= value / real <= 1.5 if found["known"] else value <= 1.05 * real
        buffer_within &= within
        line.append(f"buffer {real}/{'' if found['known'] else '>'}{value:.0f}")
    trip = figures["round_trip"]["value"]
    losses = [figures[f"network.{side}.loss"]["value"] for side in ("up", "down")]
    loss = sum(losses) / 2
    line += [f"round trip {network['idle']:.3f}/{trip:.3f}", f"loss {network['loss']:.1%}/{loss:.1%}"]
    within = [rate_within, abs(trip / network["idle"] - 1) <= 0.05, buffer_within, abs(loss - network["loss"]) <= 0.02]
    letters = "".join(letter if fits else "-" for letter, fits in zip("RTBL", within))
    print(f"{network['seed']:>4} {document['messages']:>6} messages, {', '.join(line)} [{letters}]")
    return within


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("ebbtide", type=pathlib.Path)
    words.add_argument("folder", type=pathlib.Path)
    words.add_argument("--networks", type=int, default=20)
    words.add_argument("--seed", type=int, default=1)
    words.add_argument("--jobs", type=int, default=2)
    chosen = words.parse_args()
    ebbtide, folder = str(chosen.ebbtide.resolve()), chosen.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    networks = [draw(seed) for seed in range(chosen.seed, chosen.seed + chosen.networks)]
    with concurrent.futures.ThreadPoolExecutor(chosen.jobs) as pool:
        work = [
            pool.submit(emulate, ebbtide, folder, network, f"10.{100 + place % 100}")
            for place, network in enumerate(networks)
        ]
        for job in work:
            job.result()
    scores = [compare(ebbtide, folder, network) for network in networks]
    for place, bound in enumerate(BOUNDS):
        print(f"{bound}: {sum(score[place] for score in scores)} of {len(scores)}")


if __name__ == "__main__":
    sys.exit(main())
