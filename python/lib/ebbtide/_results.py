"""Runs of scenarios and papers, and their results."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ebbtide import _ebbtide, _frames
from ebbtide._extras import need
from ebbtide._scenario import (
    ScenarioLike,
    Settings,
    count_of,
    plan_of,
    seed_of,
)
from ebbtide.control import ControlLike

#: Hears of finished replications and how many there are.
ProgressCallback = Callable[[int, int], object]


class Result:
    """The result of a run: a folder of Parquet files, and figures per cell.

    Without ``out=`` the folder is a temporary one, removed with this object.
    """

    def __init__(
        self,
        plan: _ebbtide.Plan,
        folder: Path,
        figures: tuple[str, str, str | None, int],
        temporary: tempfile.TemporaryDirectory[str] | None = None,
    ) -> None:
        self._plan = plan
        self._folder = folder
        self._document, self._per_run, self._left_out, self._reused = figures
        self._temporary = temporary

    @property
    def folder(self) -> Path:
        """The folder of results: ``runs/*.parquet``, ``manifest.json`` and ``report.html``."""
        return self._folder

    @property
    def command(self) -> str:
        """The command that computes everything again."""
        return self._plan.command

    @property
    def reused(self) -> int:
        """Replications that were read from disk rather than computed."""
        return self._reused

    @property
    def left_out(self) -> str | None:
        """Which cells miss a replication, in words; None if all are complete."""
        return self._left_out

    @property
    def report(self) -> Path:
        """The report, one HTML file. Of papers: that of the first one."""
        names = [f"{paper}.html" for paper in self._plan.papers] or ["report.html"]
        return self._folder / names[0]

    def json(self) -> dict[str, Any]:
        """Return the document of ``ebbtide run --json``."""
        document: dict[str, Any] = json.loads(self._document)
        return document

    def arrow(self) -> Any:
        """Return one row per client as a ``pyarrow.Table``.

        The columns are those of ``docs/results.md``, ``fct_s`` (seconds), and each setting by its
        name, numbers as numbers: times in s, rates in bit/s, sizes in bytes. Polars takes it
        without a copy: ``polars.from_arrow(result.arrow())``.
        """
        return _frames.table(self._folder, self._plan)

    def df(self) -> Any:
        """Return one row per client as a pandas DataFrame; see :meth:`arrow`."""
        return _frames.to_pandas(self.arrow())

    def exchanges(self) -> Any:
        """Return one row per exchange as a pandas DataFrame, of ``run(..., exchanges=True)``.

        The columns are those of ``exchanges/*.parquet`` in ``docs/results.md``. Raises ValueError
        if the results have no exchanges.
        """
        pandas = need("pandas", "dataframe")
        rows = self._folder / "exchanges"
        if not rows.is_dir():
            raise ValueError("there are no exchanges: run(..., exchanges=True) keeps them")
        return pandas.read_parquet(rows)

    def summary(self) -> Any:
        """Return one row per cell as a pandas DataFrame.

        Columns are the figures of ``ebbtide run --json`` with dots: ``fct_s.median`` (seconds),
        ``fct_median_ci95_s.low``, ``completed``, ``failed``, ``packets.up.sent``, ...
        """
        return _frames.summary(self._document)

    def compared(self) -> Any:
        """Return the published and the measured figures, of :func:`reproduce`."""
        if not self._plan.papers:
            raise ValueError("there is nothing published to compare with; see reproduce()")
        pandas = need("pandas", "dataframe")
        return pandas.DataFrame(self._compared()["figures"])

    def statements(self) -> Any:
        """Return the statements in the papers' text, and whether they hold."""
        if not self._plan.papers:
            raise ValueError("there is nothing published to compare with; see reproduce()")
        pandas = need("pandas", "dataframe")
        return pandas.DataFrame(self._compared()["statements"])

    def _compared(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads((self._folder / "compared.json").read_text())
        return document

    def __repr__(self) -> str:
        """Name cells, replications and folder."""
        cells = len(self.json()["cells"])
        return f"<Result {self._plan.place}: {cells} cells, {self._plan.runs} runs, {self._folder}>"

    def _repr_html_(self) -> str:
        columns = ["cc", *self._plan.swept(), "fct_s.median", "completed", "failed"]
        frame = self.summary()
        html: str = frame[[name for name in columns if name in frame]].to_html(index=False)
        return html


def place_of(out: str | os.PathLike[str] | None) -> tuple[Path, Any]:
    """Return the folder of results; a temporary one, if none is wanted."""
    if out is not None:
        return Path(out), None
    temporary = tempfile.TemporaryDirectory(prefix="ebbtide-")
    return Path(temporary.name), temporary


def run(
    scenario: ScenarioLike,
    *,
    set: Settings | None = None,
    cc: ControlLike | Sequence[ControlLike] | None = None,
    reps: int | None = None,
    seed: int | None = None,
    out: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    shard: tuple[int, int] | None = None,
    percentile: int = 99,
    exchanges: bool = False,
    progress: ProgressCallback | None = None,
) -> Result:
    """Run a scenario: every combination of settings and congestion controls.

    It is ``ebbtide run``: the same files, byte for byte, for the same arguments and seed.

    ``scenario``: a built-in's name, a path, or a dict. ``set``: keys of the scenario; several
    values make a sweep. ``cc``: congestion controls, by name or as classes
    (:class:`ebbtide.Control`), ``"all"``, or None for those that the command line compares.
    ``reps``, ``seed``: None for the scenario's. ``out``: a folder; what it already has is not run
    again. ``jobs``: threads, None for one per core. ``shard``: ``(i, n)`` computes
    only part i (from 1) of n of the replications, into ``out``. ``percentile``: the verdict
    compares the times by which 50, 90, 99 or 100 % of the exchanges were delivered.
    ``exchanges``: keep a row for each exchange, for :meth:`Result.exchanges`. ``progress``: called
    with finished and all replications, about ten times a second.

    Raises ValueError or TypeError for what is not possible, with argument, key and valid values;
    OSError if results cannot be kept (what is finished stays); RunError if a replication fails.
    Ctrl-C raises KeyboardInterrupt within a second; the same call again completes the work.
    """
    plan, _ = plan_of(scenario, set, cc, reps, seed)
    part = None
    if shard is not None:
        index, of = shard
        if not 1 <= index <= of:
            raise ValueError(f"shard: ({index}, {of}) is not (i, n) with 1 <= i <= n")
        if out is None:
            raise ValueError("shard: needs out=, where the parts meet")
        part = (index - 1, of)
    if isinstance(percentile, bool) or percentile not in (50, 90, 99, 100):
        raise ValueError(f"percentile: takes 50, 90, 99 or 100, not {percentile!r}")
    plan = plan.with_options(percentile, exchanges)
    folder, temporary = place_of(out)
    figures = plan.run(folder, count_of("jobs", jobs), part, progress)
    return Result(plan, folder, figures, temporary)


def reproduce(
    *papers: str,
    reps: int | None = None,
    seed: int | None = None,
    out: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    progress: ProgressCallback | None = None,
) -> Result:
    """Run papers' experiments: ``ebbtide reproduce``.

    ``papers``: names such as ``"anrw18"``. The comparison is in :meth:`Result.compared`.

    Raises ValueError for a paper that is not known; otherwise as :func:`run`.
    """
    if not papers:
        raise ValueError("papers: takes at least one name, such as 'anrw18'")
    plan = _ebbtide.Plan.of_papers(papers, count_of("reps", reps), seed_of(seed))
    folder, temporary = place_of(out)
    figures = plan.run(folder, count_of("jobs", jobs), None, progress)
    return Result(plan, folder, figures, temporary)


def replay(
    scenario: ScenarioLike,
    *,
    cc: ControlLike,
    set: Settings | None = None,
    replication: int = 0,
    seed: int | None = None,
    pcap: str | os.PathLike[str] | None = None,
) -> Any:
    """Run one replication again and give everything that happens in it: ``ebbtide replay``.

    The result is a pandas DataFrame, one row per event: ``t`` (seconds), ``event``, ``client``,
    ``exchange``, ``ordinal``, and what belongs to the event. ``pcap`` names a file for a packet
    capture.

    Raises ValueError if a key has several values; otherwise as :func:`run`.
    """
    pandas = need("pandas", "dataframe")
    if isinstance(replication, bool) or not isinstance(replication, int) or replication < 0:
        raise ValueError(f"replication: takes a number from 0, not {replication!r}")
    plan, _ = plan_of(scenario, set, [cc], 1, seed)
    if swept := plan.swept():
        raise ValueError(f"set: {swept[0]}: a replay takes one value per key")
    with tempfile.TemporaryDirectory(prefix="ebbtide-") as folder:
        trace = Path(folder) / "trace.jsonl"
        plan.replay(0, replication, trace, pcap)
        return pandas.read_json(trace, lines=True, dtype=False)
