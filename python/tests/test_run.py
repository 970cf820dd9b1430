from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import ebbtide
import pytest

from .conftest import SMALL

ARGUMENTS = ["--set", "clients=5", "--set", "exchanges=4,8", "--cc", "default,cocoa", "--reps", "2"]


def test_results_are_those_of_the_command_line_byte_for_byte(cli: str, tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    settings: dict[str, int | list[int]] = {"clients": 5, "exchanges": [4, 8]}
    result = ebbtide.run("nb-iot", set=settings, cc=["default", "cocoa"], reps=2, out=ours)
    command = [cli, "run", "nb-iot", *ARGUMENTS, "--out", str(theirs), "--json"]
    printed = subprocess.run(command, check=True, capture_output=True).stdout
    names = sorted(path.relative_to(theirs) for path in theirs.rglob("*") if path.is_file())
    assert names == sorted(path.relative_to(ours) for path in ours.rglob("*") if path.is_file())
    assert len([name for name in names if name.suffix == ".parquet"]) == 8
    for name in names:
        # The report names its folder.
        mine = (ours / name).read_bytes().replace(str(ours).encode(), str(theirs).encode())
        assert mine == (theirs / name).read_bytes(), name
    documents = [result.json(), json.loads(printed)]
    for document in documents:
        for cell in document["cells"]:
            del cell["wall_s"]
    assert documents[0] == documents[1]


def test_finished_cells_of_a_folder_are_not_run_again(tmp_path: Path) -> None:
    first = ebbtide.run("nb-iot", set=SMALL, cc="default", reps=2, out=tmp_path)
    again = ebbtide.run("nb-iot", set=SMALL, cc="default", reps=3, out=tmp_path)
    assert (first.reused, again.reused) == (0, 2)


def test_rows_have_the_settings_as_typed_columns() -> None:
    result = ebbtide.run(
        "nb-iot",
        set={
            "clients": [2, 3],
            "network.up.delay": "250 ms",
            "buffer": "infinite",
            "exchanges": 2,
        },
        cc=["default"],
        reps=2,
    )
    frame = result.df()
    assert len(frame) == (2 + 3) * 2
    assert set(frame["clients"]) == {2, 3}
    assert frame["clients"].dtype.kind == "i"
    assert set(frame["network.up.delay"]) == {0.25}
    assert set(frame["buffer"]) == {float("inf")}
    assert (frame["fct_s"] * 1e9 - frame["fct_ns"]).abs().max() < 1
    assert list(frame["client"][:2]) == [0, 1]


def test_a_summary_has_a_row_per_cell() -> None:
    result = ebbtide.run("nb-iot", set={"clients": [2, 3], "exchanges": 2}, cc="default", reps=2)
    summary = result.summary()
    assert list(summary["clients"]) == [2, 3]
    assert (summary["fct_s.p10"] <= summary["fct_s.median"]).all()
    assert (summary["fct_median_ci95_s.low"] < summary["fct_median_ci95_s.high"]).all()
    assert list(summary["completed"]) == [8, 12]
    assert "scenario" in result.arrow().column_names
    assert "nb-iot" in repr(result)


def test_a_scenario_may_be_a_name_a_file_or_a_dict(tmp_path: Path) -> None:
    import tomllib

    found = ebbtide.scenario("nb-iot")
    file = tmp_path / "nb-iot.toml"
    file.write_text(found.text)
    document = tomllib.loads(found.text)
    rows = [
        ebbtide.run(what, set=SMALL, cc=["default"], reps=1).df()["fct_ns"].to_list()
        for what in ("nb-iot", file, document)
    ]
    assert rows[0] == rows[1] == rows[2]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"set": {"client": 3}}, ["client", "did you mean 'clients'"]),
        ({"set": {"clients": 0}}, ["clients=0", "1 to 1000000"]),
        ({"set": {"clients": [3, 3]}}, ["clients", "twice"]),
        ({"set": {"clients": []}}, ["clients", "at least one"]),
        ({"set": {"network.up.rate": "5 parsec"}}, ["network.up.rate"]),
        ({"cc": ["fasr"]}, ["fasr", "did you mean 'fasor'"]),
        ({"cc": ["default", "default"]}, ["default", "twice"]),
        ({"cc": []}, ["cc", "at least one"]),
        ({"scenario": "nb-iott"}, ["nb-iott", "did you mean 'nb-iot'"]),
        ({"scenario": {"name": "x", "titel": "y"}}, ["titel"]),
        ({"reps": 0}, ["reps", "from 1"]),
        ({"seed": -1}, ["seed", "from 0"]),
        ({"jobs": 0}, ["jobs", "from 1"]),
        ({"shard": (3, 2)}, ["shard", "1 <= i <= n"]),
    ],
)
def test_an_impossible_value_is_a_value_error_that_names_it(
    change: dict[str, object], words: list[str]
) -> None:
    arguments: dict[str, object] = {"scenario": "nb-iot", "set": SMALL, "cc": ["default"], **change}
    with pytest.raises(ValueError) as raised:
        ebbtide.run(**arguments)  # type: ignore[arg-type]
    for word in words:
        assert word in str(raised.value)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"scenario": 3}, "scenario"),
        ({"set": [("clients", 3)]}, "set"),
        ({"set": {"clients": None}}, "clients"),
        ({"set": {3: 3}}, "key"),
        ({"cc": [3]}, "cc"),
        ({"reps": 2.5}, "reps"),
        ({"reps": True}, "reps"),
        ({"seed": "one"}, "seed"),
    ],
)
def test_a_wrong_type_is_a_type_error_that_names_it(change: dict[str, object], word: str) -> None:
    arguments: dict[str, object] = {"scenario": "nb-iot", "set": SMALL, "cc": ["default"], **change}
    with pytest.raises(TypeError, match=word):
        ebbtide.run(**arguments)  # type: ignore[arg-type]


def test_the_interpreter_goes_on_while_a_scenario_runs() -> None:
    ticks = []
    result = ebbtide.run(
        "nb-iot",
        set={"clients": 200},
        cc="default",
        reps=60,
        progress=lambda done, all: ticks.append((done, all, time.monotonic())),
    )
    assert len(ticks) >= 2
    assert all(total == 60 for _, total, _ in ticks)
    assert ticks[-1][0] == 60
    assert result.left_out is None


@pytest.mark.parametrize(
    "work",
    [
        "ebbtide.run('nb-iot', set={'clients': 400, 'exchanges': 1000}, cc='all', reps=100)",
        "ebbtide.Campaign('nb-iot', {'clients': 400, 'exchanges': 1000}, 'all', 100,"
        " folder=sys.argv[1]).run(jobs=2)",
        "ebbtide.map(networks=1000)",
        "ebbtide.run('nb-iot', set={'clients': 400, 'exchanges': 1000}, reps=100,"
        " cc=type('Patient', (ebbtide.Control,), {'on_transmit': lambda *arguments: 9.0}))",
    ],
    ids=["run", "campaign", "map", "control in Python"],
)
def test_ctrl_c_ends_long_work_and_the_process_within_a_second(work: str, tmp_path: Path) -> None:
    program = (
        "import ebbtide, sys\n"
        "print('running', flush=True)\n"
        "try:\n"
        f"    {work}\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', flush=True)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    time.sleep(0.5)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "interrupted\n"
    assert time.monotonic() - began < 1.0
    process.wait(10)
    assert time.monotonic() - began < 3.0


def test_events_of_one_replication_are_rows() -> None:
    events = ebbtide.replay("nb-iot", set=SMALL, cc="default")
    assert set(events["event"]) >= {"sent", "link", "arrived", "answered"}
    answered = events[events["event"] == "answered"]
    assert len(answered) == 5 * 4
    assert events["t"].is_monotonic_increasing
    with pytest.raises(ValueError, match="clients"):
        ebbtide.replay("nb-iot", set={"clients": [1, 2]}, cc="default")


def test_papers_that_are_not_known_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"anrw19.*did you mean 'anrw18'"):
        ebbtide.reproduce("anrw19")
    result = ebbtide.run("nb-iot", set=SMALL, cc="default", reps=1)
    with pytest.raises(ValueError, match="reproduce"):
        result.compared()


def test_a_folder_that_cannot_be_written_is_an_os_error(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(OSError, match="file"):
        ebbtide.run("nb-iot", set=SMALL, cc="default", reps=1, out=file / "results")


def test_a_missing_library_for_frames_names_the_package_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result = ebbtide.run("nb-iot", set=SMALL, cc="default", reps=1)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install 'ebbtide\[dataframe\]'"):
        result.df()


def test_a_forked_process_may_run_too() -> None:
    if not hasattr(os, "fork"):
        pytest.skip("no fork here")
    ebbtide.run("nb-iot", set=SMALL, cc="default", reps=2)
    child = os.fork()
    if child == 0:
        ok = ebbtide.run("nb-iot", set=SMALL, cc="default", reps=2).left_out is None
        os._exit(0 if ok else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_row_for_each_exchange_is_kept_and_the_verdict_compares_the_given_share() -> None:
    few: dict[str, int] = {"clients": 4, "exchanges": 3}
    result = ebbtide.run("nb-iot", set=few, cc="default", reps=2, exchanges=True, percentile=50)
    rows = result.exchanges()
    assert len(rows) == 4 * 3 * 2
    assert set(rows["replication"]) == {0, 1}
    assert result.json()["settings"][0]["verdict"]["percentile"] == 50
    with pytest.raises(ValueError, match="percentile: takes 50, 90, 99 or 100, not 42"):
        ebbtide.run("nb-iot", percentile=42)
    with pytest.raises(ValueError, match="exchanges=True"):
        ebbtide.run("nb-iot", set=few, cc="default", reps=1).exchanges()
