"""Maps: controls over many networks that are drawn from ranges."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ebbtide import _ebbtide, _frames
from ebbtide._extras import need
from ebbtide._results import ProgressCallback
from ebbtide._scenario import controls_of, count_of, seed_of
from ebbtide.control import ControlLike


class Map:
    """Controls over networks: the result of :func:`map`."""

    def __init__(self, document: str, worst: str, folder: Path | None) -> None:
        self._text, self._worst_text, self._folder = document, worst, folder
        self._document: dict[str, Any] = json.loads(document)

    def json(self) -> dict[str, Any]:
        """Return the document of ``ebbtide map --json``."""
        parsed: dict[str, Any] = json.loads(self._text)
        return parsed

    @property
    def command(self) -> str:
        """The command that computes the same map."""
        return str(self._document["command"])

    @property
    def folder(self) -> Path | None:
        """The folder of results, with ``map.html``; None if they are not kept."""
        return self._folder

    @property
    def left_out(self) -> list[int]:
        """The networks that were not finished within the time."""
        return [int(number) for number in self._document["left_out"]]

    def summary(self) -> Any:
        """Return one row per control over all networks, as a pandas DataFrame.

        Shares are compared by difference (``share.p5`` is the one that 95 % of the networks reach),
        times by ratio: ``median.mean`` is the geometric mean of the control's median divided by
        that of the best published control of each network.
        """
        pandas = need("pandas", "dataframe")
        rows = []
        for entry in self._document["summaries"]:
            row: dict[str, Any] = {}
            for key, value in entry.items():
                _frames.flatten(row, key, value)
            rows.append(row)
        return pandas.DataFrame(rows)

    def df(self) -> Any:
        """Return one row per network and control as a pandas DataFrame.

        Columns: ``network``, ``cc``, the settings of the network as typed columns (times in s,
        rates in bit/s, sizes in bytes), ``load``, ``idle_s``, ``exchange_s``, ``buffer_bdp``,
        ``measures.median_us`` and so on, ``regret.median`` and so on (against the best published
        control of the network), and ``safe``.
        """
        pandas = need("pandas", "dataframe")
        cells = self._document["networks"]
        columns: dict[str, list[Any]] = {}
        for key in dict.fromkeys(key for cell in cells for key in cell["settings"]):
            texts = [str(cell["settings"].get(key, "")) for cell in cells]
            columns[key] = _frames.column([_frames.typed(text) for text in texts], texts)
        rows = []
        for index, cell in enumerate(cells):
            common = {name: values[index] for name, values in columns.items()}
            figures = ("load", "idle_s", "exchange_s", "buffer_bdp")
            common |= {name: cell[name] for name in figures}
            for cc, entry in cell["controls"].items():
                row: dict[str, Any] = {"network": cell["network"], "cc": cc, **common}
                for key, value in entry.items():
                    _frames.flatten(row, key, value)
                rows.append(row)
        return pandas.DataFrame(rows)

    def worst(self) -> Any:
        """Return the networks in which each compared control is worst, as a pandas DataFrame.

        Columns: ``cc``, ``measure`` (``"share"``, ``"median"`` or ``"p90"``), ``value``,
        ``network``, and the ``command`` that runs the control and the published ones there.
        """
        pandas = need("pandas", "dataframe")
        columns = ["cc", "measure", "value", "network", "command"]
        return pandas.DataFrame(json.loads(self._worst_text), columns=columns)

    def __repr__(self) -> str:
        """Name preset, networks and controls."""
        document = self._document
        networks, controls = len(document["networks"]), len(document["summaries"])
        return f"<Map {document['preset']}: {networks} networks, {controls} controls>"


def _count(name: str, value: object) -> int:
    count = count_of(name, value)
    if count is None:
        raise TypeError(f"{name}: takes a whole number, not NoneType")
    return count


def map(
    preset: str = "all",
    *,
    ranges: Mapping[str, str] | None = None,
    networks: int = 100,
    cc: ControlLike | Sequence[ControlLike] = ("ebb", "fasor-token"),
    against: str | Sequence[str] | None = None,
    reps: int = 4,
    seed: int = 1,
    work: int | None = None,
    out: str | os.PathLike[str] | None = None,
    within: float | None = None,
    jobs: int | None = None,
    progress: ProgressCallback | None = None,
) -> Map:
    """Compare controls over networks that are drawn from ranges: ``ebbtide map``.

    The same arguments and seed give the same figures as the command line.

    ``preset``: ``"all"``, ``"lpwan"``, ``"cellular"``, ``"satellite"``, ``"wifi"``, ``"wired"`` or
    ``"fleets"``.
    ``ranges``: other ranges than the preset's, such as ``{"clients": "2..50"}``. ``networks``: how
    many to draw. ``cc``: the controls to compare. ``against``: the controls of which the best one
    in each network counts; None for the published ones. ``reps``, ``seed``: replications of each
    control in each network, and the seed of the draw and of all of them. ``work``: the highest
    product of clients and exchanges of a network, None for 6000, or for one per stratum of
    ``"fleets"``. ``out``: a folder; what it already has is not
    computed again. ``within``: seconds after which nothing more begins. ``jobs``: threads, None for
    one per core. ``progress``: called with finished and all pairs of network and control.

    Raises ValueError or TypeError for what is not possible; OSError if results cannot be kept.
    Ctrl-C raises KeyboardInterrupt within a second.
    """
    if not isinstance(preset, str):
        raise TypeError(f"preset: takes a name, not {type(preset).__name__}")
    if ranges is not None and not isinstance(ranges, Mapping):
        raise TypeError(f"ranges: takes a dict of keys and ranges, not {type(ranges).__name__}")
    written = [f"{key}={value}" for key, value in (ranges or {}).items()]
    names, classes = controls_of(cc)
    published = None if against is None else controls_of(against)[0]
    if within is not None and not within > 0:
        raise ValueError(f"within: must be above 0 seconds, not {within}")
    if seed is None:
        raise TypeError("seed: takes a whole number, not NoneType")
    draw = (
        _count("networks", networks),
        _count("reps", reps),
        seed_of(seed) or 0,
        count_of("work", work),
    )
    native = [each.native() for each in classes]
    plan = _ebbtide.MapPlan(preset, written, names, published, draw, native)
    folder = None if out is None else Path(out)
    document, worst = plan.run(folder, within, count_of("jobs", jobs), progress)
    return Map(document, worst, folder)
