"""Figures in the forms and sizes of papers: a frame in, a matplotlib axis out.

::

    from ebbtide import figures

    result = ebbtide.run("nb-iot", cc=["default", "fasor"], reps=5)
    axis = figures.cdf(result.df(), "fct_s", size="ieee")
    figures.save(axis, "completion.pdf", source=result)

What is drawn, and the command that computes it, goes into the file's metadata.
"""

from __future__ import annotations

import json
import os
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from ebbtide._extras import need
from ebbtide._stopping import mean_and_half_width

#: Widths of a column and of a page, inches.
SIZES = {
    "ieee": (3.5, 7.16),
    "acm": (3.33, 7.0),
    "screen": (6.4, 9.6),
}

# The colour and the dashes of each built-in control, as in reports and exported figures.
_CONTROLS: dict[str, tuple[str, Any]] = {
    "default": ("#cf4f00", "-"),
    "default-b": ("#8a3a00", (0, (7, 3))),
    "default-fb1": ("#b07400", (0, (3, 2))),
    "default-fb2": ("#7a5000", (0, (8, 2, 2, 2))),
    "cocoa": ("#0072b2", "-"),
    "cocoa-01": ("#3d8fc7", (0, (7, 3))),
    "cocoa-plus": ("#00477a", (0, (3, 2))),
    "cocoa-fb1": ("#4a63c9", (0, (8, 2, 2, 2))),
    "cocoa-fb2": ("#2a3590", (0, (1.5, 2))),
    "fasor": ("#008a63", "-"),
    "fasor-token": ("#00523c", (0, (7, 3))),
    "fasor-option": ("#3f9a7d", (0, (3, 2))),
    "fasor-k4": ("#5d7f1d", (0, (8, 2, 2, 2))),
    "slow": ("#7b8f2e", (0, (1.5, 2))),
    "fast-slow": ("#41590f", (0, (10, 3))),
    "linux-rto": ("#7d5fae", "-"),
    "peak-hopper": ("#51387f", (0, (7, 3))),
    "tcp": ("#4a4f55", (0, (10, 2, 1.5, 2))),
    "rcoap": ("#b3548c", "-"),
    "ebb": ("#a0158a", (0, (12, 2))),
}

# For everything else: colours that those who see no red or no green tell apart (Okabe and Ito), and
# markers for paper that knows none.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), "-", "--")

_LABELS = {
    "fct_s": "flow completion time (s)",
    "fct_s.median": "median flow completion time (s)",
    "median_fct_s": "median flow completion time (s)",
    "unnecessary_retransmissions": "unnecessary retransmissions per client",
    "unnecessary_retransmissions.median": "unnecessary retransmissions per client",
    "failed": "failed exchanges",
    "clients": "clients",
    "t": "time (s)",
    "cc": "congestion control",
}

_drawn: weakref.WeakKeyDictionary[Any, list[dict[str, Any]]] = weakref.WeakKeyDictionary()


class HasCommand(Protocol):
    """A result or a campaign: it knows the command that computes it."""

    @property
    def command(self) -> str:
        """The command."""


def size(of: str = "ieee", columns: int = 1, ratio: float = 0.66) -> tuple[float, float]:
    """Return the size of a figure in inches: of a column (1) or a page (2) of that publisher.

    Raises ValueError for one that is not known.
    """
    if of not in SIZES:
        raise ValueError(f"size: '{of}' is not one of {', '.join(SIZES)}")
    if columns not in (1, 2):
        raise ValueError(f"columns: must be 1 or 2, not {columns}")
    width = SIZES[of][columns - 1]
    return width, width / columns * ratio


def box(frame: Any, y: str = "fct_s", x: str = "cc", *, ax: Any = None, size: str = "ieee") -> Any:
    """Draw a box per value of ``x``: quartiles, whiskers at 10 % and 90 %, as the papers do."""
    ax = _axis(ax, size)
    groups = _groups(frame, x, y)
    artists = ax.boxplot(
        [values for _, values in groups],
        whis=(10, 90),
        showfliers=False,
        patch_artist=True,
        widths=0.6,
        medianprops={"color": "black"},
    )
    names = [str(name) for name, _ in groups]
    for index, patch in enumerate(artists["boxes"]):
        patch.set(facecolor=_style(names, index)["color"], alpha=0.6)
    ax.set_xticks(range(1, len(names) + 1), names, rotation=20 if len(names) > 3 else 0)
    _finish(ax, "", y)
    ax.set_ylim(bottom=0)
    _remember(ax, "box", {name: _five(values) for name, values in groups})
    return ax


def cdf(frame: Any, x: str = "fct_s", by: str = "cc", *, ax: Any = None, size: str = "ieee") -> Any:
    """Draw the cumulative distribution of ``x``, a curve per value of ``by``."""
    numpy = need("numpy", "plot")
    ax = _axis(ax, size)
    groups = _groups(frame, by, x)
    names = [str(name) for name, _ in groups]
    for index, (name, values) in enumerate(groups):
        ordered = numpy.sort(values)
        shares = numpy.arange(1, len(ordered) + 1) / len(ordered)
        ax.step(ordered, shares, where="post", label=str(name), **_style(names, index))
    _finish(ax, x, "share of clients", legend=True)
    ax.set_ylim(0, 1)
    _remember(ax, "cdf", {str(name): _five(values) for name, values in groups})
    return ax


def line(
    frame: Any,
    x: str,
    y: str = "fct_s",
    by: str = "cc",
    *,
    band: bool = True,
    ax: Any = None,
    size: str = "ieee",
) -> Any:
    """Draw a line over an axis, one per value of ``by``: the mean over replications of the median.

    ``frame`` has a row per client (:meth:`ebbtide.Result.df`). ``band``: shade the 95 % confidence
    interval over replications.
    """
    ax = _axis(ax, size)
    _check(frame, x, y, by)
    drawn: dict[str, Any] = {}
    per_run = frame.groupby([by, x, "replication"], observed=True, sort=True)[y].median()
    names = [str(name) for name in _order(frame[by])]
    for index, name in enumerate(_order(frame[by])):
        own = per_run.loc[name]
        points = [(at, *mean_and_half_width(list(v))) for at, v in own.groupby(level=0)]
        at, mean, half = zip(*points, strict=True)
        style = {
            **_style(names, index),
            "marker": _MARKERS[index % len(_MARKERS)],
            "markersize": 3.5,
        }
        ax.plot(at, mean, label=str(name), **style)
        if band and all(value != float("inf") for value in half):
            low = [m - h for m, h in zip(mean, half, strict=True)]
            high = [m + h for m, h in zip(mean, half, strict=True)]
            ax.fill_between(at, low, high, color=style["color"], alpha=0.2, linewidth=0)
        drawn[str(name)] = [[_number(value) for value in point] for point in points]
    _finish(ax, x, y, legend=True)
    ax.set_ylim(bottom=0)
    _remember(ax, "line", drawn)
    return ax


def heatmap(
    frame: Any, x: str, y: str, value: str = "fct_s", *, ax: Any = None, size: str = "ieee"
) -> Any:
    """Draw the median of ``value`` as a colour and a number for each pair of ``x`` and ``y``."""
    ax = _axis(ax, size)
    _check(frame, x, y, value)
    grid = frame.pivot_table(index=y, columns=x, values=value, aggfunc="median", observed=True)
    image = ax.imshow(grid.to_numpy(), aspect="auto", origin="lower", cmap="viridis")
    ax.set_xticks(range(len(grid.columns)), [str(name) for name in grid.columns])
    ax.set_yticks(range(len(grid.index)), [str(name) for name in grid.index])
    middle = (grid.to_numpy().max() + grid.to_numpy().min()) / 2
    for row in range(len(grid.index)):
        for col in range(len(grid.columns)):
            shown = grid.iloc[row, col]
            colour = "white" if shown < middle else "black"
            ax.text(col, row, f"{shown:.3g}", ha="center", va="center", color=colour, fontsize=6)
    ax.figure.colorbar(image, ax=ax, label=_label(value))
    _finish(ax, x, y)
    ax.grid(False)
    table = [[_number(cell) for cell in row] for row in grid.to_numpy()]
    names = [[str(name) for name in side] for side in (grid.columns, grid.index)]
    _remember(ax, "heatmap", {"x": names[0], "y": names[1], "values": table})
    return ax


def timeline(events: Any, *, client: int | None = None, ax: Any = None, size: str = "ieee") -> Any:
    """Draw what :func:`ebbtide.replay` gives: when messages were sent, repeated, answered, failed.

    ``client`` shows the exchanges of one; otherwise each client has a row.
    """
    ax = _axis(ax, size)
    _check(events, "t", "event", "client")
    shown = events if client is None else events[events["client"] == client]
    if len(shown) == 0:
        raise ValueError(f"client: there is no event of {client}")
    row = "client" if client is None else "exchange"
    kinds = [
        ("sent", shown[(shown["event"] == "sent") & (shown["ordinal"].fillna(0) == 0)], "o"),
        ("repeated", shown[(shown["event"] == "sent") & (shown["ordinal"].fillna(0) > 0)], "x"),
        ("answered", shown[shown["event"] == "answered"], "|"),
        ("failed", shown[shown["event"] == "failed"], "X"),
    ]
    drawn = {}
    for index, (name, own, marker) in enumerate(kinds):
        if len(own):
            colour = _COLOURS[index]
            ax.plot(own["t"], own[row], marker, label=name, color=colour, markersize=4, alpha=0.8)
            drawn[name] = len(own)
    _finish(ax, "t", row, legend=True)
    _remember(ax, "timeline", drawn)
    return ax


def save(axis: Any, path: str | os.PathLike[str], source: HasCommand | str | None = None) -> Path:
    """Write the figure of an axis, with data and command in its metadata, and return the path.

    ``source``: the result or campaign that it is of, or the command. PDF, SVG and PNG carry them:
    in a PDF the command is the subject and the data are the keywords, and the fonts are embedded,
    none of Type 3, as publishers require. The same figure gives the same bytes.
    """
    from ebbtide._ebbtide import VERSION

    path = Path(path)
    command = source if isinstance(source, str) or source is None else source.command
    data = json.dumps(_drawn.get(axis.figure, []), separators=(",", ":"))
    made = f"Ebbtide {VERSION}"
    metadata: dict[str, Any]
    if path.suffix == ".pdf":
        metadata = {"Creator": made, "Keywords": data, "CreationDate": None}
        metadata |= {"Subject": command} if command else {}
    elif path.suffix == ".svg":
        metadata = {"Creator": made, "Keywords": [data], "Date": None}
        metadata |= {"Description": command} if command else {}
    elif path.suffix == ".png":
        metadata = {"Software": made, "Comment": data}
        metadata |= {"Description": command} if command else {}
    else:
        raise ValueError(f"path: '{path.suffix}' is not one of .pdf, .svg, .png")
    with need("matplotlib", "plot").rc_context({"pdf.fonttype": 42}):
        axis.figure.savefig(path, metadata=metadata, bbox_inches="tight", dpi=200)
    return path


def _axis(ax: Any, of: str) -> Any:
    if ax is not None:
        return ax
    figure_class = need("matplotlib.figure", "plot").Figure
    pyplot = need("matplotlib.pyplot", "plot")
    figure, ax = pyplot.subplots(figsize=size(of), layout="constrained")
    assert isinstance(figure, figure_class)
    return ax


def _check(frame: Any, *names: str) -> None:
    for name in names:
        if name not in frame.columns:
            known = ", ".join(str(column) for column in frame.columns)
            raise ValueError(f"'{name}' is not a column; there are {known}")


def _order(values: Any) -> list[Any]:
    """Return the different values: numbers by size, names as they come."""
    found = list(dict.fromkeys(values))
    return sorted(found) if all(isinstance(value, (int, float)) for value in found) else found


def _groups(frame: Any, by: str, y: str) -> list[tuple[Any, Any]]:
    _check(frame, by, y)
    return [(name, frame.loc[frame[by] == name, y].to_numpy()) for name in _order(frame[by])]


def _style(names: Sequence[str], index: int) -> dict[str, Any]:
    """Return the look of one of these: a control has its own.

    A control with settings has that of its name if nothing else has it.
    """
    base = names[index].split(":")[0]
    is_alone = sum(name.split(":")[0] == base for name in names) == 1
    place = index % len(_COLOURS)
    spare = _COLOURS[place], _DASHES[place]
    known = _CONTROLS.get(base if is_alone else names[index], spare)
    return {"color": known[0], "linestyle": known[1], "linewidth": 1.2}


def _label(name: str) -> str:
    return _LABELS.get(name, name.replace("_", " "))


def _finish(ax: Any, x: str, y: str, legend: bool = False) -> None:
    ax.set_xlabel(_label(x), fontsize=8)
    ax.set_ylabel(_label(y), fontsize=8)
    ax.tick_params(labelsize=7)
    ax.grid(True, linewidth=0.4, alpha=0.4)
    ax.spines[["top", "right"]].set_visible(False)
    if legend:
        ax.legend(fontsize=7, frameon=False)


def _five(values: Any) -> list[float]:
    numpy = need("numpy", "plot")
    return [_number(value) for value in numpy.percentile(values, [10, 25, 50, 75, 90])]


def _number(value: Any) -> Any:
    number = value.item() if hasattr(value, "item") else value
    if isinstance(number, float):
        return float(f"{number:.6g}") if number == number and abs(number) != float("inf") else None
    return number


def _remember(ax: Any, kind: str, data: Any) -> None:
    named = {str(name): value for name, value in data.items()} if isinstance(data, dict) else data
    _drawn.setdefault(ax.figure, []).append({"figure": kind, "data": named})
