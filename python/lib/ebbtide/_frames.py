"""Results as tables: Arrow first, pandas from it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
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
    """Give the values of one setting in one type: text, if they are not all of one kind."""
    numbers = [isinstance(value, (int, float)) and not isinstance(value, bool) for value in values]
    if all(numbers):
        whole = all(isinstance(value, int) for value in values)
        return list(values) if whole else [float(value) for value in values]
    if all(isinstance(value, bool) for value in values):
        return list(values)
    return list(texts)


def settings_table(settings: Iterable[str]) -> Any:
    """Give an Arrow table: each JSON text of settings once, and its keys as typed columns."""
    pyarrow = need("pyarrow", "dataframe")
    texts = list(dict.fromkeys(settings))
    parsed: list[dict[str, str]] = [json.loads(text) for text in texts]
    keys = list(dict.fromkeys(key for one in parsed for key in one))
    columns: dict[str, Any] = {"settings": texts}
    for key in keys:
        if any(key not in one for one in parsed):
            columns[key] = [one.get(key) for one in parsed]
            continue
        own = [one[key] for one in parsed]
        columns[key] = column([typed(text) for text in own], own)
    return pyarrow.table(columns)


def pieces(folder: Path, keys: frozenset[str]) -> list[tuple[Path, list[tuple[int, int]] | None]]:
    """Give the files that hold these replications: each with its rows, or None for all of them.

    A replication that is in several files is taken from the first.
    """
    wanted = set(keys)
    found: list[tuple[Path, list[tuple[int, int]] | None]] = []
    for path in sorted((folder / "runs").glob("*.parquet")):
        if path.stem in wanted:
            wanted.discard(path.stem)
            found.append((path, None))
    for path in sorted((folder / "chunks").glob("*.keys")):
        ranges: list[tuple[int, int]] = []
        start, whole = 0, True
        for line in path.read_text().splitlines()[1:]:
            key, rows = line.split(" ")
            if key in wanted:
                wanted.discard(key)
                if ranges and sum(ranges[-1]) == start:
                    ranges[-1] = (ranges[-1][0], ranges[-1][1] + int(rows))
                else:
                    ranges.append((start, int(rows)))
            else:
                whole = False
            start += int(rows)
        if ranges:
            found.append((path.with_suffix(".parquet"), None if whole else ranges))
    return found


def table(folder: Path, keys: frozenset[str]) -> Any:
    """Give an Arrow table of one row per client of these replications, settings typed."""
    pyarrow = need("pyarrow", "dataframe")
    parquet = need("pyarrow.parquet", "dataframe")
    parts = []
    for path, ranges in pieces(folder, keys):
        whole = parquet.ParquetFile(path).read().replace_schema_metadata(None)
        parts += [whole] if ranges is None else [whole.slice(*rows) for rows in ranges]
    if not parts:
        raise ValueError(f"{folder}: has no replication of this campaign; run it first")
    rows = pyarrow.concat_tables(parts)
    index = rows.schema.get_field_index("settings")
    # As text: Arrow neither sorts nor encodes its type for JSON.
    rows = rows.set_column(index, "settings", rows["settings"].cast(pyarrow.string()))
    return with_settings(rows)


def with_settings(rows: Any) -> Any:
    """Add the settings' typed columns, and times in seconds."""
    pyarrow = need("pyarrow", "dataframe")
    compute = need("pyarrow.compute", "dataframe")
    # The same rows in the same order, however they were spread over files.
    order = ("settings", "cc", "replication", "client")
    rows = rows.sort_by([(name, "ascending") for name in order])
    encoded = compute.dictionary_encode(rows["settings"].combine_chunks())
    typed_settings = settings_table(encoded.dictionary.to_pylist())
    for name in typed_settings.column_names[1:]:
        values = typed_settings[name].combine_chunks().take(encoded.indices)
        rows = rows.append_column(name if name not in rows.column_names else f"set.{name}", values)
    if "fct_ns" in rows.column_names:
        seconds = compute.divide(rows["fct_ns"].cast(pyarrow.float64()), 1e9)
        rows = rows.append_column("fct_s", seconds)
    # What repeats is stored once: ten thousand rows of one control share one text.
    for name in ("scenario", "settings", "cc", "version"):
        index = rows.schema.get_field_index(name)
        rows = rows.set_column(index, name, rows[name].dictionary_encode())
    return rows


def to_pandas(rows: Any) -> Any:
    """Give an Arrow table as a pandas DataFrame."""
    need("pandas", "dataframe")
    return rows.to_pandas()


def summary(document: str) -> Any:
    """Give a DataFrame of one row per cell, from the document of ``ebbtide run --json``."""
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
