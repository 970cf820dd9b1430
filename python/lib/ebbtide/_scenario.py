"""Scenarios, settings and congestion controls, as the caller names them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ebbtide import _ebbtide
from ebbtide.control import Control, ControlLike, Written, named

#: One value of a setting: what a scenario file has, such as ``100``, ``"30 kbit/s"`` or a range of
#: times as text, ``"[10 ms, 20 ms]"``.
Value: TypeAlias = "str | int | float | bool"
#: Settings of a scenario: a key with one value, or with several for a sweep.
Settings: TypeAlias = "Mapping[str, Value | Sequence[Value]]"
#: A built-in scenario's name, a file, or a scenario as a nested dict.
ScenarioLike: TypeAlias = "str | os.PathLike[str] | Mapping[str, Any] | Scenario"

#: What ``ebbtide run`` compares if it is not told otherwise.
DEFAULT_CONTROLS = ("default", "cocoa", "fasor-token", "ebb")


@dataclass(frozen=True)
class Scenario:
    """A network and a workload, checked: a TOML text and where it is from."""

    place: str
    text: str


def scenario(what: ScenarioLike) -> Scenario:
    """Find and check a scenario.

    ``what`` is a built-in's name (:func:`scenarios`), a path, or a dict of the same form as a
    file (``docs/scenarios.md``).

    Raises ValueError that names the key and the possible values; TypeError for other types.
    """
    if isinstance(what, Scenario):
        return what
    if isinstance(what, Mapping):
        name = what.get("name", "scenario")
        place = name if isinstance(name, str) else "scenario"
        try:
            document = json.dumps(dict(what), allow_nan=False)
        except TypeError as error:
            raise TypeError(f"scenario: {error}; it takes what a TOML file can hold") from error
        return Scenario(place, _ebbtide.scenario_of_json(place, document))
    if isinstance(what, (str, os.PathLike)):
        return Scenario(*_ebbtide.scenario_of_name(os.fspath(what)))
    raise TypeError(f"scenario: takes a name, a path or a dict, not {type(what).__name__}")


def scenarios() -> dict[str, str]:
    """Return the built-in scenarios: name and title."""
    return {name: title for name, title, _keys in _ebbtide.scenarios()}


def controls() -> dict[str, str]:
    """Return the congestion controls: name, and what each is."""
    return {name: about for name, _source, about in _ebbtide.controls()}


def text_of(key: str, value: object) -> str:
    """One value as ``--set`` takes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        if not value.strip():
            raise ValueError(f"set: {key}: takes a value, not an empty text")
        return value.strip()
    if hasattr(value, "item") and not isinstance(value, (int, float)):
        value = value.item()  # of NumPy
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    raise TypeError(f"set: {key}: takes text, a number or a boolean, not {type(value).__name__}")


def axes_of(settings: Settings | None) -> list[tuple[str, list[str]]]:
    """Return the settings as the planner takes them."""
    axes = []
    if settings is not None and not isinstance(settings, Mapping):
        raise TypeError(f"set: takes a dict of keys and values, not {type(settings).__name__}")
    for key, values in (settings or {}).items():
        if not isinstance(key, str):
            raise TypeError(f"set: a key is a text, not {type(key).__name__}")
        several: Iterable[Any] = (
            values if isinstance(values, Iterable) and not isinstance(values, str) else [values]
        )
        texts = [text_of(key, value) for value in several]
        if not texts:
            raise ValueError(f"set: {key}: takes at least one value")
        if len(set(texts)) < len(texts):
            raise ValueError(f"set: {key}: names a value twice")
        axes.append((key, texts))
    return axes


def controls_of(
    cc: ControlLike | Sequence[ControlLike] | None,
) -> tuple[list[str], list[Written]]:
    """Return the names of controls as the planner takes them, and the classes among them."""
    if cc is None:
        return list(DEFAULT_CONTROLS), []
    if cc == "all":
        transports = {"tcp", "q-block"}
        return [name for name, _, _ in _ebbtide.controls() if name not in transports], []
    if isinstance(cc, str):
        several: Iterable[ControlLike] = cc.split(",")
    elif isinstance(cc, (type, Control)) or not isinstance(cc, Iterable):
        several = [cc]
    else:
        several = cc
    names, classes = named(several)
    if not names:
        raise ValueError("cc: takes at least one congestion control")
    for index, name in enumerate(names):
        if name in names[:index]:
            raise ValueError(f"cc: '{name}' is named twice")
    return names, classes


def count_of(name: str, value: object) -> int | None:
    """Return a number of things of which there must be one, or None."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name}: takes a whole number, not {type(value).__name__}")
    if not 1 <= value < 2**32:
        raise ValueError(f"{name}: must be from 1 to {2**32 - 1}, not {value}")
    return value


def seed_of(value: object) -> int | None:
    """Return a seed, or None for the scenario's."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"seed: takes a whole number, not {type(value).__name__}")
    if not 0 <= value < 2**64:
        raise ValueError(f"seed: must be from 0 to {2**64 - 1}, not {value}")
    return value


def plan_of(
    what: ScenarioLike,
    settings: Settings | None,
    cc: ControlLike | Sequence[ControlLike] | None,
    reps: int | None,
    seed: int | None,
) -> tuple[_ebbtide.Plan, list[Written]]:
    """Plan a campaign, everything checked; also the controls in Python that it runs."""
    found = scenario(what)
    axes, (names, classes) = axes_of(settings), controls_of(cc)
    reps, seed = count_of("reps", reps), seed_of(seed)
    native = [written.native() for written in classes]
    plan = _ebbtide.Plan(found.place, found.text, axes, names, native, reps, seed)
    return plan, classes
