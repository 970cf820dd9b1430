from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import ebbtide
import pytest

#: Cheap networks.
RANGES = {"clients": "2..8", "exchanges": "2..6", "rate": "20 kbit/s..1 Mbit/s"}


def cheap(**changes: Any) -> ebbtide.Map:
    arguments: dict[str, Any] = {"ranges": RANGES, "networks": 6, "reps": 2, "cc": ["ebb"]}
    return ebbtide.map(**{**arguments, **changes})


def test_a_map_is_that_of_the_command_line_bit_for_bit(cli: str, tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    made = cheap(out=ours, against=["default", "cocoa"], seed=3, jobs=1)
    command = [cli, "map", "--networks", "6", "--reps", "2", "--cc", "ebb", "--seed", "3"]
    command += ["--against", "default,cocoa", "--jobs", "2"]
    for key, value in RANGES.items():
        command += ["--range", f"{key}={value}"]
    printed = subprocess.run(
        [*command, "--out", str(theirs), "--json"], check=True, capture_output=True
    ).stdout
    assert made.json() == json.loads(printed)
    assert (ours / "map.html").read_bytes() == (theirs / "map.html").read_bytes()
    lines = [sorted((each / "networks.jsonl").read_text().splitlines()) for each in (ours, theirs)]
    assert lines[0] == lines[1]
    # The command that it names computes it again.
    assert made.command.startswith("ebbtide map --preset all --range 'clients=2..8'")


def test_networks_and_controls_are_rows_with_typed_settings() -> None:
    made = cheap()
    frame = made.df()
    assert set(frame["network"]) == set(range(6))
    controls = set(made.summary()["cc"])
    assert {"ebb", "default", "fasor-token"} <= controls
    assert len(frame) == 6 * len(controls)
    assert frame["clients"].between(2, 8).all()
    assert frame["network.down.rate"].between(20_000, 1_000_000).all()
    assert (frame["measures.delivered"] <= frame["measures.asked"]).all()
    # The best published control of a network has no regret there.
    published = frame[frame["cc"] != "ebb"].groupby("network")["regret.median"].min()
    assert (published <= 1.0 + 1e-9).all()
    worst = made.worst()
    assert set(worst["measure"]) == {"share", "median", "p90"}
    assert worst["command"].str.startswith("ebbtide run nb-iot").all()
    assert "6 networks" in repr(made)


def test_finished_results_of_a_folder_are_not_computed_again(tmp_path: Path) -> None:
    first = cheap(out=tmp_path)
    journal = (tmp_path / "networks.jsonl").read_text()
    heard: list[tuple[int, int]] = []
    again = cheap(out=tmp_path, progress=lambda done, all: heard.append((done, all)))
    assert again.json() == first.json()
    assert (tmp_path / "networks.jsonl").read_text() == journal


def test_networks_that_the_time_did_not_suffice_for_are_left_out() -> None:
    made = cheap(within=1e-9)
    assert made.left_out == list(range(6))
    assert len(made.df()) == 0
    assert len(made.summary()) == 0


def test_a_control_in_python_may_be_compared() -> None:
    class Rfc(ebbtide.Control):
        def on_transmit(self, transmission: Any, slot: Any, cx: Any) -> float:
            if transmission.ordinal:
                return float(2 * slot.armed)
            return float(cx.uniform(cx.ack_timeout, 1.5 * cx.ack_timeout))

    frame = cheap(cc=[Rfc], ranges={**RANGES, "workload": "continuous"}).df()
    figures = [column for column in frame if column.startswith("measures.")]
    ours, theirs = (
        frame[frame["cc"] == cc][figures].reset_index(drop=True) for cc in ("rfc", "default")
    )
    assert ours.equals(theirs)


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        ({"preset": "moon"}, ValueError, "no such preset; there are all, lpwan"),
        ({"preset": 3}, TypeError, "preset: takes a name"),
        ({"ranges": {"speed": "1..2"}}, ValueError, "speed.*no such range; there are rate"),
        ({"ranges": {"clients": "9..3"}}, ValueError, "clients=9..3"),
        ({"ranges": ["clients=2"]}, TypeError, "ranges: takes a dict"),
        ({"cc": ["eb"]}, ValueError, "did you mean 'ebb'"),
        ({"against": ["fasr"]}, ValueError, "did you mean 'fasor'"),
        ({"networks": 0}, ValueError, "networks: must be from 1"),
        ({"networks": None}, TypeError, "networks: takes a whole number"),
        ({"reps": 1.5}, TypeError, "reps: takes a whole number"),
        ({"work": -1}, ValueError, "work: must be from 1"),
        ({"within": 0}, ValueError, "within: must be above 0"),
    ],
)
def test_an_impossible_value_is_refused_by_name(
    change: dict[str, Any], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        cheap(**change)
