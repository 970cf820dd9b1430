"""Networks of `ebbtide map` with real sockets: does the order of the controls hold with libcoap's server?

    map_emulated.py EBBTIDE REPORT.json FOLDER [--networks 5] [--controls ebb,default,fasor-token,cocoa]
                    [--repeats 5] [--jobs 6] [--simulations 200] [--choose]   needs root or user namespaces

REPORT.json is the output of `ebbtide map --json`. The networks are chosen by a rule, not by hand. Their classes are
errors or none, load below or above 1, and idle round trip below or above 1 s, which makes eight. In the order of
their numbers, a network is taken if it is eligible and no network of its class has been taken yet. Five networks
therefore always include both sides of each division. A network is eligible if

- it can be run: its clients send GET, its server needs no time (the emulator adds none), its idle round trip is
  at least 0.1 s (a busy machine delays programs by milliseconds), no client needed more than 180 s in any
  replication, and there are at most 70 packets a second, on average over the 90th percentile of completion times;
- there is an order to compare: the controls' medians differ by at least 15 % between first and last,
  and their delivered shares by at most half a point, since whoever gives up early is done early.

`--choose` prints the choice and stops. Each network is emulated with each control and each of the seeds 1 to
--repeats: `ebbtide bench` with the settings of the network against libcoap's `coap-server-notls`. The resource is
created by a PUT before the clients start. Its payload is one byte longer than the network's, because libcoap's
response has no Content-Format: so all packets have the length that they have in the simulator. Results are kept in
FOLDER, and a run that is there already is not made again; one that the emulator calls INVALID is made again, twice
at most, and then left out.

Figures are medians of the completion times of all clients of all runs, with 95 % intervals. The simulator's interval
is that of the mean of the replications' medians, so the median of all clients can lie outside it; that of the
measurement is a bootstrap over runs. Two controls whose intervals overlap are tied. The winner holds if the
simulated one is measured first or tied with the first; the order holds if no two controls that are tied in neither
of the two change places. A seed stands for the same losses and delays in the emulator and in the simulator: the
column "same seeds" has the mean of the medians of such runs, simulated and measured, and then their difference.
"""

import argparse
import concurrent.futures
import itertools
import json
import pathlib
import random
import shlex
import statistics
import subprocess
import sys

LONGEST, SHORTEST_PATH, PACKETS = 180, 0.1, 70  # s, s, packets/s
DIFFERENCE, SHARE = 1.15, 0.005
ATTEMPTS = 3
SIMULATION_SEED = 1


def settings(network: dict, payload_more: int = 0) -> list[str]:
    """The options that derive the network from nb-iot."""
    values = dict(network["settings"])
    values["workload.response_payload"] = str(int(values["workload.response_payload"]) + payload_more)
    return [word for key, value in values.items() for word in ("--set", f"{key}={value}")]


def group(network: dict) -> tuple[str, str, str]:
    return (
        "no errors" if network["settings"]["errors"] == "none" else "errors",
        "load below 1" if network["load"] < 1 else "load above 1",
        "short path" if network["idle_s"] < 1 else "long path",
    )


def is_eligible(network: dict, controls: list[str], reps: int) -> bool:
    drawn = network["settings"]
    measures = [network["controls"][control]["measures"] for control in controls]
    shares = [each["delivered"] / each["asked"] for each in measures]
    medians = [each["median_us"] for each in measures]
    packets = [2 * (each["messages"] + each["probes"]) / reps / (each["p90_us"] / 1e6) for each in measures]
    return (
        drawn["workload.request_payload"] == "0"
        and drawn["server.processing"] == "0 s"
        and network["idle_s"] >= SHORTEST_PATH
        and max(each["longest_us"] for each in measures) <= 1e6 * LONGEST
        and max(packets) <= PACKETS
        and max(medians) >= DIFFERENCE * min(medians)
        and max(shares) - min(shares) <= SHARE
    )


def choose(report: dict, controls: list[str], count: int) -> list[dict]:
    taken: dict[tuple[str, str, str], dict] = {}
    for network in sorted(report["networks"], key=lambda network: network["network"]):
        if group(network) not in taken and is_eligible(network, controls, report["reps"]):
            taken[group(network)] = network
    return sorted(taken.values(), key=lambda network: network["network"])[:count]


def emulate(ebbtide: str, folder: pathlib.Path, network: dict, control: str, seed: int, host: int) -> None:
    """One run, with a result of two lines of JSON: those of `ebbtide bench` and of `ebbtide emulate`."""
    result = folder / f"{network['network']} {control} {seed}.json"
    if result.exists():
        return
    subnet = f"10.{host}"
    uri = f"coap://{subnet}.0.1/value"
    payload = int(network["settings"]["workload.response_payload"]) + 1
    ready = result.with_suffix(".ready")
    put = shlex.join([ebbtide, "put", uri, "-e", "0" * payload])
    marker = shlex.quote(str(ready))
    server = f"coap-server-notls -A {subnet}.0.1 -d 1 & until {put}; do sleep 0.2; done; touch {marker}; wait"
    bench = [ebbtide, "bench", uri, "--scenario", "nb-iot", *settings(network, 1), "--cc", control]
    bench += ["--seed", str(seed), "--json"]
    waits = f"until [ -e {marker} ]; do sleep 0.2; done; exec {shlex.join(bench)}"
    command = [ebbtide, "emulate", "--link", "nb-iot", *settings(network), "--seed", str(seed), "--subnet", subnet]
    command += ["--json", "--server", server, "--", "timeout", str(3 * LONGEST), "sh", "-c", waits]
    for _ in range(ATTEMPTS):
        ready.unlink(missing_ok=True)
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        with result.with_suffix(".log").open("a") as log:
            log.write(done.stdout + done.stderr)
        if len(lines) == 2 and lines[1]["valid"]:
            result.write_text(json.dumps(lines))
            break
    ready.unlink(missing_ok=True)


def simulate(ebbtide: str, network: dict, controls: list[str], reps: int, seed: int) -> dict[str, tuple]:
    """The median of each control and its interval."""
    command = [ebbtide, "run", "nb-iot", *settings(network), "--cc", ",".join(controls), "--reps", str(reps)]
    done = subprocess.run([*command, "--seed", str(seed), "--jobs", "1", "--json"], capture_output=True, check=True)
    cells = {cell["cc"]: cell for cell in json.loads(done.stdout)["cells"]}
    return {control: (cells[control]["fct_s"]["median"], *cells[control]["fct_median_ci95_s"]) for control in controls}


def results(folder: pathlib.Path, network: dict, control: str) -> dict[int, list[dict]]:
    """The runs by their seeds."""
    files = folder.glob(f"{network['network']} {control} *.json")
    return dict(sorted((int(file.stem.split()[-1]), json.loads(file.read_text())) for file in files))


def same_seeds(ebbtide: str, folder: pathlib.Path, network: dict, control: str) -> tuple[float, float]:
    """The mean of the medians of runs, simulated and measured."""
    runs = results(folder, network, control)
    simulated = [simulate(ebbtide, network, [control], 1, seed)[control][0] for seed in runs]
    return statistics.fmean(simulated), statistics.fmean(bench["fct_s"]["median"] for bench, _ in runs.values())


def measured(folder: pathlib.Path, network: dict, controls: list[str]) -> tuple[dict[str, tuple], str]:
    """The median of each control with its interval and the number of runs; a remark on runs."""
    figures, asked, completed, late = {}, 0, 0, [0.0]
    for control in controls:
        found = list(results(folder, network, control).values())
        runs = [bench["fct_each_s"] for bench, _ in found]
        if not runs:
            raise SystemExit(f"network {network['network']}, {control}: no valid run")
        luck = random.Random(1)
        again = sorted(
            statistics.median(itertools.chain.from_iterable(luck.choices(runs, k=len(runs)))) for _ in range(2000)
        )
        median = statistics.median(itertools.chain.from_iterable(runs))
        figures[control] = (median, again[50], again[1949], len(runs))
        completed += sum(bench["completed"] for bench, _ in found)
        asked += sum(bench["completed"] + bench["failed"] for bench, _ in found)
        late += [link["summary"]["lateness"]["p99_us"] for _, link in found]
    return figures, f"{completed} of {asked} exchanges answered, at most {max(late):.0f} us late at the 99th percentile"


def is_tied(one: tuple, other: tuple) -> bool:
    return one[1] <= other[2] and other[1] <= one[2]


def order(figures: dict[str, tuple]) -> str:
    """From the shortest median on; `=` stands between controls that are tied."""
    names = sorted(figures, key=lambda control: figures[control][0])
    text = names[0]
    for before, after in itertools.pairwise(names):
        text += (" = " if is_tied(figures[before], figures[after]) else " < ") + after
    return text


def verdict(simulated: dict[str, tuple], real: dict[str, tuple]) -> tuple[str, str]:
    first, winner = (min(figures, key=lambda control: figures[control][0]) for figures in (real, simulated))
    tied = is_tied(real[first], real[winner]) or is_tied(simulated[first], simulated[winner])
    won = "same" if first == winner else "tied" if tied else "other"
    same, clear, contradicted = 0, 0, []
    for one, other in itertools.combinations(simulated, 2):
        if is_tied(simulated[one], simulated[other]) or is_tied(real[one], real[other]):
            continue
        clear += 1
        if (simulated[one] < simulated[other]) == (real[one] < real[other]):
            same += 1
        else:
            contradicted.append(f"{one}/{other}")
    pairs = f"{same} of {clear} clear pairs"
    return won, f"contradicted ({', '.join(contradicted)})" if contradicted else f"holds ({pairs})"


def show(ebbtide: str, folder: pathlib.Path, network: dict, controls: list[str], reps: int) -> tuple[bool, bool]:
    simulated = simulate(ebbtide, network, controls, reps, SIMULATION_SEED)
    real, remark = measured(folder, network, controls)
    number, drawn = network["network"], network["settings"]
    print(
        f"\nNetwork {number}: {', '.join(group(network))}. {drawn['clients']} clients, {drawn['exchanges']} exchanges, "
        f"{drawn['workload']}, errors {drawn['errors']}, {drawn['network.down.rate']}, idle {network['idle_s']:.2f} s, "
        f"load {network['load']:.2f}, buffer {drawn['buffer']}, MAX_RETRANSMIT {drawn['max_retransmit']}\n"
    )
    print("| control | report | simulated | measured | same seeds | difference | runs |\n|---|---|---|---|---|---|---|")
    for control in controls:
        report = network["controls"][control]["measures"]["median_us"] / 1e6
        (one, *bounds), (other, *within, runs) = simulated[control], real[control]
        own, real_own = same_seeds(ebbtide, folder, network, control)
        print(
            f"| `{control}` | {report:.1f} | {one:.1f} ({bounds[0]:.1f} to {bounds[1]:.1f}) "
            f"| {other:.1f} ({within[0]:.1f} to {within[1]:.1f}) | {own:.1f}, {real_own:.1f} "
            f"| {real_own / own - 1:+.1%} | {runs} |"
        )
    won, held = verdict(simulated, real)
    print(f"\nsimulated: {order(simulated)}\nmeasured:  {order(real)}\nwinner: {won}; order: {held}; {remark}")
    return won != "other", held.startswith("holds")


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("ebbtide", type=pathlib.Path)
    words.add_argument("report", type=pathlib.Path)
    words.add_argument("folder", type=pathlib.Path)
    words.add_argument("--networks", type=int, default=5)
    words.add_argument("--controls", default="ebb,default,fasor-token,cocoa")
    words.add_argument("--repeats", type=int, default=5)
    words.add_argument("--jobs", type=int, default=6)
    words.add_argument("--simulations", type=int, default=200)
    words.add_argument("--choose", action="store_true")
    chosen = words.parse_args()
    ebbtide, folder = str(chosen.ebbtide.resolve()), chosen.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    controls = chosen.controls.split(",")
    networks = choose(json.loads(chosen.report.read_text()), controls, chosen.networks)
    for network in networks:
        print(f"network {network['network']}: {', '.join(group(network))}")
    if chosen.choose:
        return
    hosts = itertools.cycle(range(100, 200))
    with concurrent.futures.ThreadPoolExecutor(chosen.jobs) as pool:
        # By repeats, so that a run that is interrupted has all networks and controls.
        work = [
            pool.submit(emulate, ebbtide, folder, network, control, seed, next(hosts))
            for seed in range(1, chosen.repeats + 1)
            for network in networks
            for control in controls
        ]
        for job in work:
            job.result()
    held = [show(ebbtide, folder, network, controls, chosen.simulations) for network in networks]
    print(f"\nwinner: {sum(winner for winner, _ in held)} of {len(held)} hold or are tied", end="; ")
    print(f"order: {sum(order for _, order in held)} of {len(held)} hold")


if __name__ == "__main__":
    sys.exit(main())
