"""Campaigns: many cells, run anywhere, resumed, analysed."""

from __future__ import annotations

import concurrent.futures as futures
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ebbtide import _archive, _chunks, _ebbtide, _frames
from ebbtide._extras import need
from ebbtide._results import Result
from ebbtide._scenario import ScenarioLike, Settings, count_of, plan_of
from ebbtide._stopping import Until, mean_and_half_width
from ebbtide.control import Control, ControlLike, Written, named


@dataclass(frozen=True)
class Missing:
    """The replications that a campaign has not computed yet."""

    #: Pairs of cell and replication.
    runs: list[tuple[int, int]]
    #: How long they take on this machine's cores, s; None where nothing says so yet.
    seconds: float | None

    def __len__(self) -> int:
        return len(self.runs)

    def __str__(self) -> str:
        """Describe it in words."""
        if not self.runs:
            return "nothing is missing"
        about = "" if self.seconds is None else f", about {_span(self.seconds)}"
        return f"{len(self.runs)} replications are missing{about}"


@dataclass(frozen=True)
class Failed:
    """A replication that failed, and the command that runs it again, alone."""

    key: str
    cell: str
    replication: int
    error: str
    replay: str


class Campaign:
    """A scenario under every combination of settings and controls, many times over.

    ``axes`` and ``controls`` are ``set`` and ``cc`` of :func:`ebbtide.run`. ``reps`` is a number of
    replications, or ``"until ci < 2 %"``: each cell is run until the 95 % confidence interval of
    its median completion time is narrower than that share of it on either side (``", at most 500"``
    sets the end, 1280 by default). ``folder`` keeps the results; what it has is never run again.

    Results are the same whatever runs them: they are named by what they are the result of.

    Raises ValueError or TypeError as :func:`ebbtide.run`; ValueError if the folder holds another
    campaign.
    """

    _classes: list[Written]

    def __init__(
        self,
        scenario: ScenarioLike,
        axes: Settings | None = None,
        controls: ControlLike | Sequence[ControlLike] | None = None,
        reps: int | str | None = None,
        *,
        folder: str | os.PathLike[str],
        seed: int | None = None,
    ) -> None:
        self._until = Until.parse(reps) if isinstance(reps, str) else None
        count = self._until.least if self._until else reps
        assert not isinstance(count, str)
        self._plan, self._classes = plan_of(scenario, axes, controls, count, seed)
        self._folder = Path(folder)
        self._check_folder()
        self._resume_until()

    @classmethod
    def open(
        cls, folder: str | os.PathLike[str], *, controls: Sequence[type[Control]] = ()
    ) -> Campaign:
        """Return the campaign that a folder is of: of a Campaign, or of ``ebbtide run --out``.

        ``controls``: the classes of the campaign's controls that are written in Python.

        Raises OSError if there is none, ValueError if this version does not understand it.
        """
        path = Path(folder)
        if not (path / "manifest.json").is_file():
            raise FileNotFoundError(f"{path}: is not the folder of a campaign: no manifest.json")
        campaign = cls.__new__(cls)
        campaign._until = None
        _, campaign._classes = named(controls)
        native = [written.native() for written in campaign._classes]
        campaign._plan = _ebbtide.Plan.of_folder(path, native)
        campaign._folder = path
        campaign._check_folder()
        return campaign

    def save(self) -> None:
        """Write the manifest, so that others can run the campaign from its folder."""
        self._plan.save_manifest(self._folder)

    def verify(self, folder: str | os.PathLike[str]) -> list[str]:
        """Compute everything again into another folder; give the keys whose files differ."""
        again = Campaign.__new__(Campaign)
        again._until, again._plan, again._folder = None, self._plan, Path(folder)
        again._classes = self._classes
        again.run()
        return self._plan.differing(self._folder, folder)

    @property
    def folder(self) -> Path:
        """Where the results are."""
        return self._folder

    @property
    def command(self) -> str:
        """The ``ebbtide run`` of the same cells."""
        return f"{self._plan.command} --out {self._folder}"

    def cells(self) -> Any:
        """Return a DataFrame of the cells: control, settings, replications."""
        pandas = need("pandas", "dataframe")
        cells = self._plan.cells()
        return pandas.DataFrame(
            [
                {"cc": cc, **{k: _frames.typed(v) for k, v in settings}, "reps": reps}
                for cc, settings, reps, _ in cells
            ]
        )

    def missing(self, *, retry_failed: bool = False) -> Missing:
        """Return the missing replications, and an estimate of their time.

        The time is that of finished replications, in proportion to their messages. Replications
        that have failed are counted only with ``retry_failed``: they would fail again.
        """
        runs = self._plan.missing(self._folder)
        if not retry_failed:
            failed = {entry.key for entry in self.failed()}
            if failed:
                keys = self._plan.keys()
                runs = [(cell, rep) for cell, rep in runs if keys[cell][rep] not in failed]
        rate = self._seconds_per_message()
        if rate is None:
            return Missing(runs, None if runs else 0.0)
        weights = [messages for _, _, _, messages in self._plan.cells()]
        seconds = rate * sum(weights[cell] for cell, _ in runs) / (os.cpu_count() or 1)
        return Missing(runs, seconds)

    def failed(self) -> list[Failed]:
        """Return the replications that failed, each with the command that runs it again."""
        found = []
        for path in sorted((self._folder / "failed").glob("*.json")):
            entry = json.loads(path.read_text())
            fields = (entry["cell"], entry["replication"], entry["error"], entry["replay"])
            found.append(Failed(path.stem, *fields))
        return found

    def run(
        self,
        executor: futures.Executor | None = None,
        *,
        jobs: int | None = None,
        chunk_seconds: float = _chunks.CHUNK_SECONDS,
        shard: tuple[int, int] = (1, 1),
        retry_failed: bool = False,
        progress: Callable[[int, int], object] | None = None,
    ) -> Campaign:
        """Run the missing replications, and return the campaign itself.

        ``executor``: any ``concurrent.futures.Executor`` whose workers see the folder; None for
        this process's threads, ``jobs`` of them. Of Dask it is
        ``client.get_executor(pure=False)``. ``chunk_seconds``: about how long a piece of work
        takes; a piece writes one file, and one whose worker dies is run again. ``shard``: ``(i,
        n)`` runs only part i (from 1) of n. ``progress``: called with finished and all
        replications.

        A replication that fails is written down (:meth:`failed`) and the rest goes on. Ctrl-C and a
        killed driver lose the pieces under way, nothing else; calling it again goes on.

        Raises OSError if results cannot be kept: what is finished stays valid.
        """
        if not chunk_seconds > 0:
            raise ValueError(f"chunk_seconds: must be above 0, not {chunk_seconds}")
        index, of = shard
        if not 1 <= index <= of:
            raise ValueError(f"shard: ({index}, {of}) is not (i, n) with 1 <= i <= n")
        jobs = count_of("jobs", jobs)
        self._folder.mkdir(parents=True, exist_ok=True)
        while True:
            self._plan.save_manifest(self._folder)
            runs = self.missing(retry_failed=retry_failed).runs
            # By what they are, not by their place among the missing: parts must not overlap.
            runs = [run for run in runs if sum(run) % of == index - 1]
            if runs:
                self._run(runs, executor, jobs, chunk_seconds, progress)
            if not self._extend():
                return self

    def _run(
        self,
        runs: list[tuple[int, int]],
        executor: futures.Executor | None,
        jobs: int | None,
        chunk_seconds: float,
        progress: Callable[[int, int], object] | None,
    ) -> None:
        cells = self._cells
        finished = 0

        def heard(done: _chunks.Done) -> None:
            nonlocal finished
            finished += len(done.keys) + len(done.failed)
            if progress is not None:
                progress(finished, len(runs))

        rest = runs
        rate = self._seconds_per_message()
        if rate is None:
            # One cheap replication first, to know how long a piece is: of the middle of the costs.
            ordered = sorted(runs, key=lambda run: cells[run[0]][3])
            probe = ordered[len(ordered) // 2]
            probed: list[_chunks.Done] = []
            _chunks.Pool(None, 1, probed.append).run(iter([self._piece([probe])]))
            heard(probed[0])
            rest = [run for run in runs if run != probe]
            rate = max(probed[0].wall_s, 1e-4) / cells[probe[0]][3]
        pool = _chunks.Pool(executor, jobs, heard)
        whole = rate * sum(cells[cell][3] for cell, _ in rest)
        most = min(chunk_seconds, max(whole / (pool.workers * _chunks.PER_WORKER), 0.2))
        parts = _chunks.cut(rest, lambda cell: rate * cells[cell][3], most)
        pool.run(self._piece(part) for part in parts)

    def _piece(self, runs: Sequence[tuple[int, int]]) -> _chunks.Piece:
        cells = self._cells
        work: _chunks.Work = []
        last = -1
        for cell, replication in runs:
            if cell != last:
                cc, settings, _, _ = cells[cell]
                work.append((settings, cc, []))
                last = cell
            work[-1][2].append(replication)
        plan, folder = self._plan, str(self._folder.resolve())
        classes, version = self._classes, _ebbtide.VERSION
        return _chunks.Piece(plan.place, plan.text, plan.seed, version, work, classes, folder)

    @property
    def _cells(self) -> list[tuple[str, list[tuple[str, str]], int, int]]:
        known = getattr(self, "_known_cells", None)
        if known is None or known[0] is not self._plan:
            known = (self._plan, self._plan.cells())
            self._known_cells = known
        cells: list[tuple[str, list[tuple[str, str]], int, int]] = known[1]
        return cells

    def result(self) -> Result:
        """Return the figures of the existing results, and write the report.

        Cells that miss a replication are left out; ``Result.left_out`` names them.
        """
        return Result(self._plan, self._folder, self._plan.read(self._folder))

    def arrow(self) -> Any:
        """Return one row per client as a ``pyarrow.Table``, as :meth:`ebbtide.Result.arrow`."""
        return _frames.table(self._folder, self._plan)

    def df(self) -> Any:
        """Return one row per client as a pandas DataFrame."""
        return _frames.to_pandas(self.arrow())

    def summary(self) -> Any:
        """Return one row per complete cell as a DataFrame, as :meth:`ebbtide.Result.summary`."""
        return self.result().summary()

    def sql(self, query: str) -> Any:
        """Run a DuckDB query, and return a DataFrame. The table is ``runs``: one row per client.

        It has the files' columns and each setting as a typed one: ``SELECT cc, clients,
        median(fct_ns) / 1e9 FROM runs GROUP BY ALL``. Files are read where they are.
        """
        duckdb = need("duckdb", "dataframe")
        pieces, whole = _frames.pieces(self._folder, self._plan.keys())
        if not pieces:
            raise ValueError(f"{self._folder}: has no replication of this campaign; run it first")
        with duckdb.connect() as connection:
            # Only by quotes can a file's name break out of the list.
            names = [f"'{str(path).replace(chr(39), chr(39) * 2)}'" for path, _ in pieces]
            files = f"read_parquet([{', '.join(names)}])"
            typed = _frames.settings_table(self._cells)
            texts = connection.sql(f"SELECT DISTINCT settings FROM {files}").fetchall()
            known = set(typed["settings"].to_pylist())
            if not whole or any(text not in known for (text,) in texts):
                # Some replications are there twice, or under settings that are written otherwise.
                connection.register("runs", self.arrow())
                return connection.sql(query).df()
            connection.register("all_settings", typed)
            connection.sql("CREATE VIEW typed_settings AS SELECT DISTINCT * FROM all_settings")
            connection.sql(
                f"CREATE VIEW runs AS SELECT * FROM {files} JOIN typed_settings USING (settings)"
            )
            return connection.sql(query).df()

    def compare(self, a: str, b: str, figure: str = "median_fct_s") -> Any:
        """Compare two controls in every combination of settings, pairwise.

        In a replication both draw the same random numbers, so differences of pairs are used: the
        interval is much narrower than that of two samples. ``figure``: ``"median_fct_s"`` (the
        median flow completion time, s) or ``"unnecessary"`` (median unnecessary retransmissions of
        a client).

        Gives a DataFrame: the settings, ``pairs``, ``a``, ``b`` (means), ``difference`` (b - a),
        its 95 % interval ``low`` to ``high``, ``relative`` (difference / a), and ``better``: the
        control with the smaller figure if the interval excludes zero, else None.

        Raises ValueError for a control or figure that is not there.
        """
        pandas = need("pandas", "dataframe")
        known = list(dict.fromkeys(cc for cc, _, _, _ in self._cells))
        for name in (a, b):
            if name not in known:
                raise ValueError(f"compare: '{name}' is not in this campaign: {', '.join(known)}")
        if figure not in ("median_fct_s", "unnecessary"):
            raise ValueError(f"figure: '{figure}' is neither 'median_fct_s' nor 'unnecessary'")
        values = self._per_run(figure)
        rows = []
        sides: dict[tuple[tuple[str, str], ...], dict[str, list[float]]] = {}
        for index, (cc, settings, _, _) in enumerate(self._cells):
            if cc in (a, b) and index in values:
                sides.setdefault(tuple(settings), {})[cc] = values[index]
        for common, both in sides.items():
            if a not in both or b not in both:
                continue
            pairs = list(zip(both[a], both[b], strict=False))
            mean, half = mean_and_half_width([right - left for left, right in pairs])
            mean_a = math.fsum(left for left, _ in pairs) / len(pairs)
            mean_b = math.fsum(right for _, right in pairs) / len(pairs)
            decided = abs(mean) > half
            rows.append(
                {
                    **{key: _frames.typed(value) for key, value in common},
                    "pairs": len(pairs),
                    "a": mean_a,
                    "b": mean_b,
                    "difference": mean,
                    "low": mean - half,
                    "high": mean + half,
                    "relative": mean / mean_a if mean_a else math.nan,
                    "better": (a if mean > 0 else b) if decided else None,
                }
            )
        return pandas.DataFrame(rows)

    def compact(self, most_rows: int = 100_000) -> int:
        """Combine small files, sorted by cell, and return how many files there are then.

        A file has about ``most_rows`` rows. What is read afterwards is the same, byte by byte, and
        an interruption loses nothing. The campaign must not run at the same time.
        """
        return self._plan.compact(self._folder, most_rows)

    def package(self, path: str | os.PathLike[str]) -> Path:
        """Write a ZIP file for others to check and rerun, and return its path.

        It holds scenario, manifest, data, figures, the environment's versions, and ``rerun.py``,
        which computes everything again and compares.

        Raises ValueError if the campaign is not complete.
        """
        return _archive.package(Path(path), self._folder, self._plan, self.result())

    def slurm(self, tasks: int, *, time: str = "01:00:00", options: Mapping[str, str] = {}) -> str:
        """Return a Slurm array script that computes the campaign in so many parts.

        Each array element runs ``python -m ebbtide run FOLDER --shard I/N``, in a folder that all
        machines see. ``time`` is the limit of one, ``options`` are further ``#SBATCH`` lines, such
        as ``{"partition": "short"}``.

        Raises ValueError for ``"until ..."``, where parts depend on each other.
        """
        if self._until is not None:
            raise ValueError("slurm: takes a number of replications, not 'until ...'")
        count_of("tasks", tasks)
        self.save()
        return _archive.slurm(self._folder, tasks, time, options)

    def __repr__(self) -> str:
        """Name scenario, cells and replications."""
        cells = len(self._cells)
        return f"<Campaign {self._plan.place}: {cells} cells, {self._plan.runs} runs>"

    def _per_run(self, figure: str) -> dict[int, list[float]]:
        """Return the figure of each replication of each complete cell."""
        _, per_run, _, _ = self._plan.read(self._folder)
        return {entry["cell"]: entry[figure] for entry in json.loads(per_run)}

    def _seconds_per_message(self) -> float | None:
        """Return what finished pieces say of costs: wall-clock seconds per message."""
        lists = sorted((self._folder / "chunks").glob("*.keys"))[:100]
        if not lists:
            return None
        weights = {
            key: weight
            for keys, (_, _, _, weight) in zip(self._plan.keys(), self._cells, strict=True)
            for key in keys
        }
        wall_s, weight = 0.0, 0
        for path in lists:
            first, *rest = path.read_text().splitlines()
            own = [weights.get(line.split(" ")[0]) for line in rest]
            seconds = float(first.split(" ")[1])
            # Files that were put together do not say what they took.
            if seconds > 0 and own and None not in own:
                wall_s += seconds
                weight += sum(value or 0 for value in own)
        return max(wall_s, 1e-6) / weight if weight else None

    def _check_folder(self) -> None:
        """Refuse a folder of another campaign: its files would be mixed with ours."""
        path = self._folder / "manifest.json"
        if not path.is_file():
            return
        theirs, ours = json.loads(path.read_text()), json.loads(self._plan.manifest())
        for name, what in (
            ("version", "results of version {theirs}, and this is {ours}"),
            ("scenario_toml", "results of another scenario"),
            ("set", "other settings"),
            ("cc", "other controls"),
            ("seed", "results of seed {theirs}, not {ours}"),
        ):
            if theirs.get(name) != ours.get(name):
                says = what.format(theirs=theirs.get(name), ours=ours.get(name))
                raise ValueError(
                    f"folder: {self._folder} holds {says}; choose another folder, or remove it"
                )

    def _resume_until(self) -> None:
        """Continue with the replications of a stopped campaign."""
        path = self._folder / "manifest.json"
        if self._until is None or not path.is_file():
            return
        cells = json.loads(path.read_text())["cells"]
        self._plan = self._plan.with_reps([max(len(cell["runs"]), 1) for cell in cells])

    def _extend(self) -> bool:
        """Return cells whose interval is too wide more replications; whether any has."""
        if self._until is None:
            return False
        values = self._per_run("median_fct_s")
        reps = [cell[2] for cell in self._cells]
        wanted = [
            self._until.next(values[index]) if index in values else count
            for index, count in enumerate(reps)
        ]
        if wanted == reps:
            return False
        self._plan = self._plan.with_reps(wanted)
        return True


def _span(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
