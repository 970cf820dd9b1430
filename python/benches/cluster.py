"""Compares a local Dask cluster of two workers with one process of two threads, over 10,000 cells.

    python cluster.py [ROUNDS]

Each round computes the same campaign in both ways, in turn, into new folders, and checks that the
files are the same. It prints seconds and CPU seconds of all processes. The ratios are those of the
least values: whatever else the machine does makes a round slower, never faster. On a machine that
does nothing else, both ratios are about the same. The cluster runs before the clock does.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import ebbtide
import psutil
from distributed import Client, LocalCluster
from ebbtide._scenario import Settings

#: 25 x 20 x 2 networks under ten controls.
AXES: Settings = {
    "clients": list(range(1, 26)),
    "exchanges": list(range(1, 21)),
    "buffer": [14100, "infinite"],
}
CONTROLS = ["default", "default-fb1", "default-fb2", "linux-rto", "peak-hopper", "cocoa"]
CONTROLS += ["cocoa-plus", "fasor", "fasor-token", "ebb"]


def campaign(folder: Path) -> ebbtide.Campaign:
    """Return the campaign of 10,000 cells, a replication each."""
    made = ebbtide.Campaign("nb-iot", AXES, CONTROLS, 1, folder=folder)
    assert len(made.missing()) == 10_000
    return made


def spent(work: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds and the CPU seconds that `work` takes, those of the workers included."""
    own = psutil.Process()

    def cpu() -> float:
        times = [process.cpu_times() for process in (own, *own.children(recursive=True))]
        return float(sum(each.user + each.system for each in times))

    began, before = time.perf_counter(), cpu()
    work()
    return time.perf_counter() - began, cpu() - before


def main(rounds: int) -> None:
    """Measure both in turn."""
    times: dict[str, list[tuple[float, float]]] = {"threads": [], "cluster": []}
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        executor = client.get_executor(pure=False)
        client.run(lambda: ebbtide.__version__)
        for number in range(rounds):
            with tempfile.TemporaryDirectory(prefix="ebbtide-") as place:
                one, two = (campaign(Path(place) / name) for name in times)
                ways = [
                    ("threads", partial(one.run, jobs=2)),
                    ("cluster", partial(two.run, executor)),
                ]
                # The first of two is not always the same one.
                for name, work in ways[:: 1 if number % 2 == 0 else -1]:
                    times[name].append(spent(work))
                assert two._plan.differing(two.folder, one.folder) == []
            pair = [f"{name} {v[-1][0]:.1f} s, CPU {v[-1][1]:.1f} s" for name, v in times.items()]
            print(f"round {number + 1}: {'; '.join(pair)}", flush=True)
    for index, what in enumerate(("time", "CPU time")):
        threads, clustered = (min(pair[index] for pair in times[name]) for name in times)
        print(f"ratio of the least {what}: {clustered / threads:.3f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
