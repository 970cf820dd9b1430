"""From a packet capture to a scenario."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ebbtide import _ebbtide
from ebbtide._scenario import Scenario


@dataclass(frozen=True)
class Figure:
    """An estimate in ``unit``: ``bit/s``, ``s``, ``B``, or none for shares and numbers.

    ``low`` and ``high`` bound it with 95 % confidence; None where there is no bound. ``value`` is
    None for a buffer without a limit. If not ``known``, the value is one that contradicts nothing.
    """

    key: str
    value: float | None
    unit: str
    low: float | None
    high: float | None
    known: bool
    how: str


@dataclass(frozen=True)
class Fit:
    """A scenario that was fitted to a capture, what was estimated, and what was not."""

    #: The scenario, as :func:`ebbtide.run` takes it; its ``text`` is TOML with comments.
    scenario: Scenario
    #: The estimates by their keys, such as ``network.up.rate``, and ``round_trip``.
    figures: dict[str, Figure]
    #: What the capture cannot tell, a sentence each.
    unknown: list[str]
    #: Where the capture was taken: ``clients``, ``server`` or ``link``.
    taken_at: str
    #: CoAP messages and exchanges in the capture, and the time that it covers, seconds.
    messages: int
    exchanges: int
    duration_s: float

    def as_dict(self) -> dict[str, Any]:
        """Return the scenario as a nested dict. Needs Python 3.11."""
        import tomllib

        return tomllib.loads(self.scenario.text)


def fit(
    capture: str | os.PathLike[str],
    *,
    port: int = 5683,
    taken_at: str | None = None,
    name: str | None = None,
) -> Fit:
    """Fit a scenario to a capture (pcap or pcapng) of CoAP over UDP.

    ``port`` is that of the servers. ``taken_at`` is ``clients``, ``server``, or ``link`` for both
    ends; by default it is found out. ``name`` is that of the scenario, by default the file's.
    ``docs/fit.md`` says what can be known from which place::

        found = ebbtide.fit("capture.pcapng")
        print(found.figures["network.down.rate"], found.unknown)
        print(ebbtide.run(found.scenario, cc=["default", "fasor-token"]).summary())

    Raises ValueError for what is not a capture, holds no CoAP, or only one direction of it; OSError
    for what cannot be read; TypeError for other types.
    """
    if not isinstance(capture, (str, os.PathLike)):
        raise TypeError(f"capture: takes a path, not {type(capture).__name__}")
    if isinstance(port, bool) or not isinstance(port, int):
        raise TypeError(f"port: takes a whole number, not {type(port).__name__}")
    if not 1 <= port <= 65535:
        raise ValueError(f"port: must be from 1 to 65535, not {port}")
    if taken_at is not None and not isinstance(taken_at, str):
        raise TypeError(f"taken_at: takes a name, not {type(taken_at).__name__}")
    own = name if name is not None else Path(os.fspath(capture)).stem
    document = json.loads(_ebbtide.fit(os.fspath(capture), port, taken_at, own))
    figures = {each["key"]: Figure(**each) for each in document["figures"]}
    return Fit(
        scenario=Scenario(own, document["scenario"]),
        figures=figures,
        unknown=document["unknown"],
        taken_at=document["taken_at"],
        messages=document["messages"],
        exchanges=document["exchanges"],
        duration_s=document["duration_s"],
    )
