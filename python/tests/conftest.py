from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import ebbtide
import pytest

#: Enough to see every kind of row, and over in milliseconds.
SMALL: dict[str, int] = {"clients": 5, "exchanges": 4}


@pytest.fixture
def cli() -> str:
    """The command line program, built from the same tree."""
    found = os.environ.get("EBBTIDE_BIN") or shutil.which("ebbtide")
    if found is None:
        pytest.skip("EBBTIDE_BIN does not name the ebbtide command")
    return found


@pytest.fixture
def campaign(tmp_path: Path) -> Callable[..., ebbtide.Campaign]:
    """Makes a campaign of two cells and three replications in a folder of its own."""

    def make(**changes: object) -> ebbtide.Campaign:
        arguments: dict[str, object] = {
            "scenario": "nb-iot",
            "axes": SMALL,
            "controls": ["default", "fasor-token"],
            "reps": 3,
            "folder": tmp_path / "results",
        }
        return ebbtide.Campaign(**{**arguments, **changes})  # type: ignore[arg-type]

    return make
