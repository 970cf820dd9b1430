"""The table of emulator_agrees.sh: emulated and simulated flow completion times, cell by cell.

    emulator_table.py FOLDER CELL...

A file of FOLDER is named by its cell and its run, and has two lines of JSON: what `ebbtide bench`
printed and what `ebbtide emulate` printed. W is the Wasserstein distance of the two distributions
of flow completion times (the mean distance between equal quantiles).
"""

import json
import pathlib
import statistics
import sys


def quantile(values: list[float], share: float) -> float:
    position = share * (len(values) - 1)
    low = int(position)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (position - low)


def wasserstein(first: list[float], second: list[float]) -> float:
    shares = [(i + 0.5) / 1000 for i in range(1000)]
    return statistics.fmean(abs(quantile(first, s) - quantile(second, s)) for s in shares)


def main() -> None:
    folder, cells = pathlib.Path(sys.argv[1]), sys.argv[2:]
    print("clients buffer    errors control      simulated  emulated   median      W  latest p99  valid runs")
    for cell in cells:
        emulated: list[float] = []
        simulated: list[float] = []
        late: list[float] = []
        runs = list(folder.glob(f"{cell} *"))
        for run in runs:
            lines = [json.loads(line) for line in run.read_text().splitlines() if line.startswith("{")]
            if len(lines) != 2 or not lines[1]["valid"] or lines[0]["failed"]:
                continue
            late.append(lines[1]["summary"]["lateness"]["p99_us"])
            emulated += lines[0]["fct_each_s"]
            simulated = sorted(lines[0]["simulated"]["fct_each_s"])
        clients, buffer, errors, control = cell.split()
        name = f"{clients:>7} {buffer:<9} {errors:<6} {control:<12}"
        if not emulated:
            print(f"{name} no valid run")
            continue
        emulated.sort()
        expected, median = statistics.median(simulated), statistics.median(emulated)
        distance = wasserstein(emulated, simulated) / expected
        print(
            f"{name} {expected:>9.3f} {median:>9.3f} {median / expected - 1:>+8.2%} {distance:>6.2%}"
            f" {max(late):>8.0f} us  {len(late)} of {len(runs)}"
        )


if __name__ == "__main__":
    main()
