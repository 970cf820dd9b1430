"""Forms of a campaign for others: few files, a ZIP file, a script for a cluster."""

from __future__ import annotations

import json
import platform
import shlex
import sys
import zipfile
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from ebbtide import _ebbtide
from ebbtide._results import Result

_RERUN = '''"""Compute everything again and compare, byte by byte: python rerun.py"""

import pathlib
import sys
import tempfile

from ebbtide import Campaign

here = pathlib.Path(__file__).resolve().parent
with tempfile.TemporaryDirectory() as again:
    print(f"running {Campaign.open(here)!r}; 'pip install ebbtide==VERSION' has the same program")
    differing = Campaign.open(here).verify(again)
print("all results are the same" if not differing else f"{len(differing)} replications differ")
sys.exit(bool(differing))
'''

_README = """Results of Ebbtide VERSION.

    pip install 'ebbtide[dataframe]==VERSION'
    python rerun.py          # compute everything again and compare, byte by byte

The same by the command line:

    COMMAND

scenario.toml   network and workload
manifest.json   settings, controls, seed, and the file of every replication
runs, chunks    the data: Parquet, a row per client
report.html     figures; opens in a browser
summary.json    figures of every cell, as numbers
environment.json  what it was computed with
"""


def package(path: Path, folder: Path, plan: _ebbtide.Plan, result: Result) -> Path:
    """Write the ZIP file. The same results give the same bytes, whenever they are packed."""
    if result.left_out is not None:
        raise ValueError(f"package: the campaign is not complete. {result.left_out}")

    def filled(text: str) -> str:
        return text.replace("VERSION", _ebbtide.VERSION).replace("COMMAND", plan.command)

    document = result.json()
    for cell in document["cells"]:
        cell.pop("wall_s", None)
    texts = {
        "README.txt": filled(_README),
        "rerun.py": filled(_RERUN),
        "scenario.toml": plan.text,
        "environment.json": json.dumps(environment(), indent=2) + "\n",
        "summary.json": json.dumps(document, indent=2) + "\n",
    }
    files = [folder / "manifest.json", folder / "report.html"]
    for part in ("runs", "chunks", "failed"):
        files += sorted(f for f in (folder / part).glob("*") if f.suffix != ".partial")
    partial = path.with_name(path.name + ".partial")
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in texts.items():
            archive.writestr(_entry(name), text)
        for file in files:
            archive.writestr(_entry(file.relative_to(folder).as_posix()), file.read_bytes())
    partial.replace(path)
    return path


def _entry(name: str) -> zipfile.ZipInfo:
    """Return an entry without the time of day."""
    entry = zipfile.ZipInfo(name)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    return entry


def environment() -> dict[str, object]:
    """Return the environment of the results."""
    packages = {}
    for name in ("ebbtide", "numpy", "pandas", "pyarrow", "duckdb", "distributed", "matplotlib"):
        try:
            packages[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return {
        "ebbtide": _ebbtide.VERSION,
        "python": platform.python_version(),
        "system": platform.system(),
        "machine": platform.machine(),
        "packages": packages,
    }


def slurm(folder: Path, tasks: int, time: str, options: Mapping[str, str]) -> str:
    """Return the array script."""
    lines = {"job-name": "ebbtide", "array": f"1-{tasks}", "time": time, **options}
    sbatch = "\n".join(f"#SBATCH --{name}={value}" for name, value in lines.items())
    where = shlex.quote(str(folder.resolve()))
    python = shlex.quote(sys.executable)
    return f"""#!/bin/bash
{sbatch}
# Each element computes its share of what is missing; submit it again to complete what was stopped.
exec {python} -m ebbtide run {where} \\
    --shard "$SLURM_ARRAY_TASK_ID/{tasks}" --jobs "${{SLURM_CPUS_PER_TASK:-1}}"
"""
