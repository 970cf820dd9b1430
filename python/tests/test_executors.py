"""Other executors than threads and Dask, and disks that are full."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import ebbtide
import pytest

from .conftest import SMALL

MPI = """
import sys
import ebbtide
from mpi4py.futures import MPIPoolExecutor

if __name__ == "__main__":
    campaign = ebbtide.Campaign(
        "nb-iot", {axes!r}, ["default", "fasor-token"], 4, folder=sys.argv[1]
    )
    with MPIPoolExecutor() as executor:
        assert executor.num_workers == 2
        campaign.run(executor, chunk_seconds=0.001)
    print(campaign.missing())
"""


def test_workers_of_mpi_give_the_same_results(tmp_path: Path) -> None:
    mpiexec = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if importlib.util.find_spec("mpi4py") is None or mpiexec is None:
        pytest.skip("no mpi4py or no mpiexec")
    program = tmp_path / "driver.py"
    program.write_text(MPI.format(axes=SMALL))
    command = [mpiexec, "-n", "3", sys.executable, "-m", "mpi4py.futures", str(program)]
    # As root, and on fewer cores than there are processes.
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    environment = {**os.environ, **allowed, "OMPI_MCA_rmaps_base_oversubscribe": "1"}
    done = subprocess.run(
        [*command, str(tmp_path / "mpi")],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "nothing is missing"
    plain = ebbtide.run("nb-iot", set=SMALL, cc=["default", "fasor-token"], reps=4)
    assert ebbtide.Campaign.open(tmp_path / "mpi").arrow().equals(plain.arrow())


FULL = """
import errno
import sys
from pathlib import Path
import ebbtide

disk = Path(sys.argv[1])
def campaign(folder):
    return ebbtide.Campaign("nb-iot", {"clients": 20, "exchanges": 4}, "default", 40, folder=folder)

made = campaign(disk / "results")
try:
    made.run(jobs=2, chunk_seconds=0.001)
except OSError as error:
    print("stopped:", error)
else:
    sys.exit("the disk was not full")
there = 40 - len(made.missing())
print("finished:", there)
assert 0 < there < 40
try:
    ebbtide.run("nb-iot", set={"clients": 20}, cc="default", reps=40, out=disk / "run")
except OSError as error:
    print("stopped:", error)
else:
    sys.exit("the disk was not full")
(disk / "ballast").unlink()
# What is finished is valid, and the rest is computed.
assert 40 - len(made.missing()) == there
made.run()
whole = campaign(sys.argv[2]).run()
assert made._plan.differing(made.folder, whole.folder) == []
assert made.arrow().equals(whole.arrow())
print("the same")
"""


def test_a_full_disk_stops_a_campaign_and_what_is_finished_stays_valid(tmp_path: Path) -> None:
    program = tmp_path / "full.py"
    program.write_text(FULL)
    disk = tmp_path / "disk"
    disk.mkdir()
    # A file system of 600 KiB, most of which a file takes, in a mount namespace of its own.
    script = (
        f"mount -t tmpfs -o size=600k none {disk} && "
        f"head -c 400k /dev/zero > {disk}/ballast && "
        f"exec {sys.executable} {program} {disk} {tmp_path}/whole"
    )
    command = ["unshare", "--mount", "sh", "-c", script]
    if os.geteuid() != 0:
        command[1:1] = ["--user", "--map-root-user"]
    permitted = [*command[:-1], f"mount -t tmpfs none {disk}"]
    if shutil.which("unshare") is None or subprocess.run(permitted, capture_output=True).returncode:
        pytest.skip("not permitted to mount a file system in a namespace")
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    first, finished, second, same = done.stdout.strip().splitlines()
    assert "No space left" in first, first
    assert "No space left" in second, second
    assert finished.startswith("finished: ")
    assert same == "the same"
