"""The table of emulator_agrees.sh: emulated and simulated flow completion times per cell."""

import glob
import json
import statistics
import sys


def quantile(values: list[float], share: float) -> float:
    position = share * (len(values) - 1)
    low = int(position)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (position - low)


SEVEN = [("min", 0.0), ("p10", 0.1), ("p25", 0.25), ("median", 0.5), ("p75", 0.75), ("p90", 0.9), ("max", 1.0)]


def simulated_quantile(fct: dict[str, float], share: float) -> float:
    """Linear between the order statistics that the simulator prints."""
    for (low, a), (high, b) in zip(SEVEN, SEVEN[1:]):
        if share <= b:
            return fct[low] + (fct[high] - fct[low]) * (share - a) / (b - a)
    return fct["max"]


def main() -> None:
    folder, cells = sys.argv[1], sys.argv[2:]
    print("clients buffer    errors control       simulated  emulated  median      W  late p99  runs")
    for cell in cells:
        clients, buffer, errors, cc = cell.split()
        name = f"{folder}/{clients}-{buffer}-{errors}-{cc}"
        with open(f"{name}-simulated") as file:
            fct = json.load(file)["cells"][0]["fct_s"]
        flows: list[float] = []
        late: list[float] = []
        runs = invalid = failed = 0
        for path in glob.glob(f"{name}-[0-9]*"):
            if path.endswith(".err"):
                continue
            with open(path) as file:
                lines = [json.loads(line) for line in file if line.startswith("{")]
            if len(lines) != 2:
                failed += 1
                continue
            bench, emulation = lines
            late.append(emulation["summary"]["lateness"]["p99_us"])
            if not emulation["valid"] or bench["failed"]:
                invalid += 1
                continue
            runs += 1
            flows += bench["fct_each_s"]
        if not flows:
            print(f"{clients:>7} {buffer:<9} {errors:<6} {cc:<12} no valid run ({invalid} invalid, {failed} failed)")
            continue
        flows.sort()
        median = statistics.median(flows)
        shares = [(i + 0.5) / 1000 for i in range(1000)]
        distance = statistics.fmean(abs(quantile(flows, s) - simulated_quantile(fct, s)) for s in shares)
        print(
            f"{clients:>7} {buffer:<9} {errors:<6} {cc:<12} {fct['median']:>10.3f} {median:>9.3f} "
            f"{100 * (median / fct['median'] - 1):>+6.2f}% {100 * distance / fct['median']:>5.2f}% "
            f"{max(late):>6.0f} us  {runs}" + (f" ({invalid} invalid, {failed} failed)" if invalid + failed else "")
        )


if __name__ == "__main__":
    main()
