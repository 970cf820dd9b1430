"""Campaigns on a real Dask cluster: workers that are killed, and a driver that is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ebbtide
import pytest

distributed = pytest.importorskip("distributed")

#: Some seconds of work in pieces of a fraction of one.
AXES: dict[str, int | list[int]] = {"clients": [50, 100, 150], "exchanges": 50}
CONTROLS = ["default", "cocoa", "fasor-token"]
REPS = 20

DRIVER = """
import sys
import ebbtide
from distributed import Client, LocalCluster

if __name__ == "__main__":
    campaign = ebbtide.Campaign("nb-iot", {axes!r}, {controls!r}, {reps}, folder=sys.argv[1])
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with Client(cluster) as client:
            print("cluster", *[w.pid for w in cluster.workers.values()], flush=True)
            campaign.run(client.get_executor(pure=False), chunk_seconds=0.3)
"""


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> ebbtide.Campaign:
    folder = tmp_path_factory.mktemp("expected")
    return ebbtide.Campaign("nb-iot", AXES, CONTROLS, REPS, folder=folder).run()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None
    ) as cluster:
        yield cluster


def soon(holds: Callable[[], bool], seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, "it took too long"
        time.sleep(0.05)


def is_whole(made: ebbtide.Campaign, expected: ebbtide.Campaign) -> None:
    assert len(made.missing()) == 0
    assert made._plan.differing(made.folder, expected.folder) == []
    ours = made.arrow()
    # Nothing lost, nothing twice.
    assert ours.num_rows == (50 + 100 + 150) * len(CONTROLS) * REPS
    assert ours.equals(expected.arrow())


def test_a_worker_that_is_killed_half_way_loses_nothing(
    cluster: Any, expected: ebbtide.Campaign, tmp_path: Path
) -> None:
    made = ebbtide.Campaign("nb-iot", AXES, CONTROLS, REPS, folder=tmp_path / "killed")
    killed = []

    def kill() -> None:
        soon(lambda: len(list((made.folder / "chunks").glob("*.keys"))) >= 3)
        worker = next(iter(cluster.workers.values()))
        os.kill(worker.pid, signal.SIGKILL)
        killed.append(len(made.missing()))

    with distributed.Client(cluster) as client:
        thread = threading.Thread(target=kill)
        thread.start()
        made.run(client.get_executor(pure=False), chunk_seconds=0.3)
        thread.join()
    assert killed[0] > 0, "it was killed when all was done"
    is_whole(made, expected)


def test_a_driver_that_is_killed_half_way_is_called_again_and_loses_nothing(
    expected: ebbtide.Campaign, tmp_path: Path
) -> None:
    made = ebbtide.Campaign("nb-iot", AXES, CONTROLS, REPS, folder=tmp_path / "killed")
    program = tmp_path / "driver.py"
    program.write_text(DRIVER.format(axes=AXES, controls=CONTROLS, reps=REPS))
    driver = subprocess.Popen(
        [sys.executable, program, made.folder],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert driver.stdout is not None
    first, *pids = driver.stdout.readline().split()
    assert first == "cluster"
    soon(lambda: len(list((made.folder / "chunks").glob("*.keys"))) >= 3)
    driver.kill()
    driver.wait()
    there = len(made.missing())
    assert 0 < there < 9 * REPS, "it was killed too late"
    # Its workers may still be writing: they end when they miss it, and what they write is the same.
    made.run(jobs=2, chunk_seconds=0.1)
    is_whole(made, expected)

    def ended() -> bool:
        return not any(Path(f"/proc/{pid}/cmdline").exists() for pid in pids)

    if Path("/proc/self").exists():
        soon(ended)
    is_whole(made, expected)


def test_any_executor_of_dask_gives_the_same_results(
    cluster: Any, expected: ebbtide.Campaign, tmp_path: Path
) -> None:
    made = ebbtide.Campaign("nb-iot", AXES, CONTROLS, REPS, folder=tmp_path / "whole")
    heard: list[int] = []
    with distributed.Client(cluster) as client:
        executor = client.get_executor(pure=False)
        made.run(executor, progress=lambda done, all: heard.append(done))
    assert heard[-1] == 9 * REPS
    assert heard == sorted(heard)
    is_whole(made, expected)
