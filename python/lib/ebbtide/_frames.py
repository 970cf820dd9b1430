"""Results as tables: Arrow first, pandas from it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ebbtide import _ebbtide
from ebbtide._extras import need


def typed(text: str) -> int | float | bool | str:
    """One value of a setting: numbers and quantities (in s, bit/s or bytes) as numbers."""
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            pass
    if text in ("true", "false"):
        return text == "true"
    if text == "infinite":
        return float("inf")
    quantity = _ebbtide.quantity(text)
    return text if quantity is None else quantity[0]


def column(values: Sequence[int | float | bool | str], texts: Sequence[str]) -> list[Any]:
    """Return the values of one setting in one type: text, if they are not all of one kind."""
    numbers = [isinstance(value, (int, float)) and not isinstance(value, bool) for value in values]
    if all(numbers):
        whole = all(isinstance(value, int) for value in values)
        return list(values) if whole else [float(value) for value in values]
    if all(isinstance(value, bool) for value in values):
        return list(values)
    return list(texts)


#: What a plan says of its cells: control, settings, replications, messages.
Cells = list[tuple[str, list[tuple[str, str]], int, int]]


def settings_text(settings: Sequence[tuple[str, str]]) -> str:
    """Return settings as the files have them: one JSON object."""
    return json.dumps(dict(settings), separators=(",", ":"), ensure_ascii=False)


def settings_table(cells: Cells) -> Any:
    """Return an Arrow table of a row per cell: the settings as text, and each as a typed column."""
    pyarrow = need("pyarrow", "dataframe")
    columns: dict[str, Any] = {"settings": [settings_text(settings) for _, settings, _, _ in cells]}
    for key in dict.fromkeys(key for _, settings, _, _ in cells for key, _ in settings):
        own = [dict(settings).get(key) for _, settings, _, _ in cells]
        texts = [text for text in own if text is not None]
        columns[key] = (
            column([typed(text) for text in texts], texts) if len(texts) == len(own) else own
        )
    return pyarrow.table(columns)


#: A file of results, and of its rows: first, how many, and the cell that they are of.
Piece = tuple[Path, list[tuple[int, int, int]]]


def pieces(folder: Path, keys: Sequence[Sequence[str]]) -> tuple[list[Piece], bool]:
    """Return the files that hold these replications, listed by cell, with the rows that are wanted.

    A replication that is in several files is taken from the first. Also whether all rows of all
    files are wanted.
    """
    wanted = {key: cell for cell, own in enumerate(keys) for key in own}
    found: list[Piece] = []
    whole = True
    for path in sorted((folder / "runs").glob("*.parquet")):
        cell = wanted.pop(path.stem, None)
        if cell is not None:
            found.append((path, [(0, -1, cell)]))
    for path in sorted((folder / "chunks").glob("*.keys")):
        ranges: list[tuple[int, int, int]] = []
        skipped = False
        start = 0
        for line in path.read_text().splitlines()[1:]:
            key, rows = line.split(" ")
            cell = wanted.pop(key, None)
            if cell is None:
                skipped = True
            elif ranges and ranges[-1][0] + ranges[-1][1] == start and ranges[-1][2] == cell:
                ranges[-1] = (ranges[-1][0], ranges[-1][1] + int(rows), cell)
            else:
                ranges.append((start, int(rows), cell))
            start += int(rows)
        if ranges:
            found.append((path.with_suffix(".parquet"), ranges))
            whole = whole and not skipped
    return found, whole


def table(folder: Path, plan: _ebbtide.Plan) -> Any:
    """Return an Arrow table of one row per client, in the order of the plan, settings typed."""
    numpy, pyarrow = need("numpy", "dataframe"), need("pyarrow", "dataframe")
    parquet, compute = need("pyarrow.parquet", "dataframe"), need("pyarrow.compute", "dataframe")
    files, _ = pieces(folder, plan.keys())
    if not files:
        raise ValueError(f"{folder}: has no replication of this campaign; run it first")
    parts, cells = [], []
    for path, ranges in files:
        whole = parquet.ParquetFile(path).read().replace_schema_metadata(None)
        for first, count, cell in ranges:
            part = whole.slice(first, count if count >= 0 else None)
            parts.append(part)
            cells.append(numpy.full(part.num_rows, cell, dtype=numpy.int32))
    rows = pyarrow.concat_tables(parts).append_column("", pyarrow.array(numpy.concatenate(cells)))
    # The same rows in the same order, however they were spread over files.
    order = [(name, "ascending") for name in ("", "replication", "client")]
    rows = rows.take(compute.sort_indices(rows.select(["", "replication", "client"]), order))
    cell_of = rows[""].combine_chunks()
    rows = rows.drop_columns([""])
    settings = settings_table(plan.cells())
    for name in settings.column_names:
        values = settings[name].combine_chunks()
        if name == "settings":
            values = values.dictionary_encode()
            rows = rows.set_column(rows.schema.get_field_index(name), name, values.take(cell_of))
        else:
            name = name if name not in rows.column_names else f"set.{name}"
            rows = rows.append_column(name, values.take(cell_of))
    if "fct_ns" in rows.column_names:
        seconds = compute.divide(rows["fct_ns"].cast(pyarrow.float64()), 1e9)
        rows = rows.append_column("fct_s", seconds)
    # What repeats is stored once: ten thousand rows of one control share one text.
    for name in ("scenario", "cc", "version", "scenario_hash"):
        if name in rows.column_names:
            index = rows.schema.get_field_index(name)
            rows = rows.set_column(index, name, rows[name].dictionary_encode())
    return rows.combine_chunks()


def to_pandas(rows: Any) -> Any:
    """Return an Arrow table as a pandas DataFrame."""
    need("pandas", "dataframe")
    return rows.to_pandas()


def summary(document: str) -> Any:
    """Return a DataFrame of one row per cell, from the document of ``ebbtide run --json``."""
    pandas = need("pandas", "dataframe")
    rows = []
    parsed = json.loads(document)
    for cell in parsed["cells"]:
        row: dict[str, Any] = {}
        for key, value in cell.items():
            flatten(row, key, value)
        rows.append(row)
    frame = pandas.DataFrame(rows)
    frame.attrs["scenario"] = parsed["scenario"]
    frame.attrs["seed"] = parsed["seed"]
    frame.attrs["version"] = parsed["version"]
    return frame


def flatten(row: dict[str, Any], name: str, value: Any) -> None:
    """Add a value of a cell: of an object each part, `fct_s.median`; of an interval both ends."""
    if isinstance(value, dict):
        for key, part in value.items():
            flatten(row, f"{name}.{key}", part)
    elif name.endswith("_ci95_s") and isinstance(value, list):
        row[f"{name}.low"], row[f"{name}.high"] = value
    elif isinstance(value, str):
        row[name] = typed(value) if name not in ("cc", "notes") else value
    else:
        row[name] = value
