from __future__ import annotations

import concurrent.futures as futures
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import ebbtide
import pytest

from .conftest import SMALL

Make = Callable[..., ebbtide.Campaign]


def rows(campaign: ebbtide.Campaign) -> list[dict[str, object]]:
    found: list[dict[str, object]] = campaign.arrow().to_pylist()
    return found


def test_figures_and_rows_are_those_of_a_run_whatever_computed_them(
    campaign: Make, tmp_path: Path
) -> None:
    plain = ebbtide.run("nb-iot", set=SMALL, cc=["default", "fasor-token"], reps=3)
    threads = campaign(folder=tmp_path / "threads").run(jobs=3, chunk_seconds=0.001)
    one = campaign(folder=tmp_path / "one").run(jobs=1)
    processes = campaign(folder=tmp_path / "processes")
    with futures.ProcessPoolExecutor(2) as executor:
        processes.run(executor, chunk_seconds=0.001)
    for each in (threads, one, processes):
        assert len(each.missing()) == 0
        assert each.failed() == []
        assert rows(each) == plain.arrow().to_pylist()
        assert each._plan.differing(each.folder, plain.folder) == []
        left, right = each.summary().drop(columns="wall_s"), plain.summary().drop(columns="wall_s")
        assert left.equals(right)


def test_missing_tells_how_many_and_how_long(campaign: Make) -> None:
    made = campaign()
    missing = made.missing()
    assert (len(missing), missing.seconds) == (6, None)
    assert str(missing) == "6 replications are missing"
    made.run()
    assert str(made.missing()) == "nothing is missing"
    more = campaign(reps=50).missing()
    assert len(more) == 94
    assert more.seconds is not None and 0 < more.seconds < 60
    assert "94 replications are missing, about 0 s" in str(more)


def test_a_second_run_computes_only_what_is_missing(campaign: Make) -> None:
    heard: list[tuple[int, int]] = []
    campaign().run()
    campaign(reps=4).run(progress=lambda done, all: heard.append((done, all)))
    assert heard[-1] == (2, 2)
    campaign(reps=4).run(progress=lambda done, all: pytest.fail("there is nothing to run"))


def test_replications_that_are_there_twice_count_once(campaign: Make, tmp_path: Path) -> None:
    made = campaign()
    made.run(jobs=1)
    before = rows(made)
    # Another driver that cut the same work in another way, and wrote into the same folder.
    from ebbtide._ebbtide import run_chunk

    settings = [(key, str(value)) for key, value in SMALL.items()]
    found = ebbtide.scenario("nb-iot")
    work = [(settings, "default", [2, 1])]
    run_chunk((found.place, found.text), 1, work, [], made.folder)
    assert len(list((made.folder / "chunks").glob("*.parquet"))) > 1
    assert rows(made) == before
    assert made.sql("SELECT count(*) AS n FROM runs")["n"][0] == len(before)


def test_until_the_interval_is_narrow_runs_wide_cells_longer(campaign: Make) -> None:
    made = campaign(reps="until ci < 5 %, at most 40", axes={"clients": [1, 20], "exchanges": 20})
    made.run()
    reps = dict(
        zip(
            made.cells()["clients"].astype(str) + made.cells()["cc"],
            made.cells()["reps"],
            strict=True,
        )
    )
    assert set(reps.values()) <= {10, 20, 40}
    summary = made.summary()
    low, high = summary["fct_median_ci95_s.low"], summary["fct_median_ci95_s.high"]
    narrow = (high - low) / 2 <= 0.05 * (high + low) / 2
    assert (narrow | (summary["reps"] == 40)).all()
    again = campaign(reps="until ci < 5 %, at most 40", axes={"clients": [1, 20], "exchanges": 20})
    assert len(again.missing()) == 0
    with pytest.raises(
        ValueError, match=r"reps: 'until ci < x' is not a number or 'until ci < 2 %"
    ):
        campaign(reps="until ci < x")


def test_controls_are_compared_in_pairs_under_the_same_luck(campaign: Make) -> None:
    made = campaign(axes={"clients": [50], "exchanges": 10}, reps=12).run()
    compared = made.compare("default", "fasor-token")
    (row,) = compared.to_dict("records")
    assert row["pairs"] == 12
    assert row["low"] < row["difference"] < row["high"]
    assert row["difference"] == pytest.approx(row["b"] - row["a"])
    values = made._per_run("median_fct_s")
    unpaired = sum((max(v) - min(v)) for v in values.values())
    assert row["high"] - row["low"] < unpaired
    same = made.compare("default", "default").to_dict("records")[0]
    assert (same["difference"], same["low"], same["high"], same["better"]) == (0, 0, 0, None)
    with pytest.raises(ValueError, match=r"'cocoa' is not in this campaign: default, fasor-token"):
        made.compare("default", "cocoa")
    with pytest.raises(ValueError, match="figure: 'speed'"):
        made.compare("default", "fasor-token", figure="speed")


def test_questions_in_sql_see_settings_as_typed_columns(campaign: Make) -> None:
    made = campaign(axes={"clients": [2, 5], "network.up.delay": ["250 ms", "1 s"]}, reps=2)
    with pytest.raises(ValueError, match="run it first"):
        made.sql("SELECT 1")
    made.run()
    query = 'SELECT clients, "network.up.delay" AS delay, count(*) AS n FROM runs GROUP BY ALL'
    found = {(r["clients"], r["delay"]): r["n"] for r in made.sql(query).to_dict("records")}
    assert found == {(2, 0.25): 8, (2, 1.0): 8, (5, 0.25): 20, (5, 1.0): 20}


def test_compacted_results_are_the_same_in_fewer_files(campaign: Make) -> None:
    made = campaign(reps=6)
    made.run(chunk_seconds=0.0001, jobs=2)
    before, files = rows(made), len(list(made.folder.rglob("*.parquet")))
    assert files > 2
    assert made.compact() == 1
    assert [path.parent.name for path in made.folder.rglob("*.parquet")] == ["chunks"]
    assert rows(made) == before
    assert len(made.missing()) == 0
    assert made.compact(most_rows=20) == 3
    assert rows(made) == before


def test_the_command_line_reads_what_a_campaign_wrote(cli: str, campaign: Make) -> None:
    made = campaign().run()
    done = subprocess.run([cli, "report", made.folder], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    theirs = (made.folder / "report.html").read_text()
    made.result()
    assert (made.folder / "report.html").read_text() == theirs


def test_a_package_reruns_itself_and_finds_nothing_different(
    campaign: Make, tmp_path: Path
) -> None:
    made = campaign()
    made.run(jobs=1)
    path = made.package(tmp_path / "out.zip")
    folder = tmp_path / "unpacked"
    with zipfile.ZipFile(path) as archive:
        archive.extractall(folder)
    assert {"README.txt", "rerun.py", "scenario.toml", "manifest.json", "report.html"} <= {
        each.name for each in folder.iterdir()
    }
    assert json.loads((folder / "environment.json").read_text())["ebbtide"] == ebbtide.__version__
    done = subprocess.run(
        [sys.executable, folder / "rerun.py"], capture_output=True, text=True, cwd=folder
    )
    assert done.returncode == 0, done.stderr
    assert "all results are the same" in done.stdout
    with pytest.raises(ValueError, match=r"not complete\. "):
        campaign(reps=5).package(tmp_path / "partial.zip")
    assert not (tmp_path / "partial.zip").exists()


def test_parts_of_an_array_job_meet_in_one_folder(campaign: Make) -> None:
    made = campaign(reps=4)
    script = made.slurm(3, time="00:10:00", options={"partition": "short"})
    assert "#SBATCH --array=1-3" in script
    assert "#SBATCH --partition=short" in script
    (last,) = [part for part in script.split("exec ") if part.startswith(sys.executable)]
    for index in range(1, 4):
        assert len(made.missing()) > 0
        command = last.replace("${SLURM_CPUS_PER_TASK:-1}", "1")
        environment = {"SLURM_ARRAY_TASK_ID": str(index), "PATH": "/usr/bin:/bin"}
        subprocess.run(["bash", "-c", command], check=True, env=environment)
    assert len(made.missing()) == 0
    assert len(rows(made)) == 2 * 4 * 5
    with pytest.raises(ValueError, match="slurm"):
        campaign(reps="until ci < 2 %").slurm(3)


def test_a_replication_that_fails_is_listed_with_its_replay_and_the_rest_goes_on(
    campaign: Make,
) -> None:
    made = campaign()
    # As a worker leaves it; no scenario that passes validation is known to fail.
    keys = made._plan.keys()
    folder = made.folder / "failed"
    folder.mkdir(parents=True)
    replay = made._plan.replay_command(1, 2)
    entry = {"cell": "fasor-token", "replication": 2, "error": "panicked: why", "replay": replay}
    (folder / f"{keys[1][2]}.json").write_text(json.dumps(entry))
    made.run()
    (failed,) = made.failed()
    assert failed.error == "panicked: why"
    assert failed.replay == (
        "ebbtide replay nb-iot --set clients=5 --set exchanges=4 --cc fasor-token --rep 2 --seed 1"
    )
    assert len(rows(made)) == 5 * 5
    assert len(made.missing()) == 0
    assert len(made.missing(retry_failed=True)) == 1
    made.run(retry_failed=True)
    assert len(rows(made)) == 6 * 5


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"axes": {"clients": 6}}, "other settings"),
        ({"controls": ["cocoa"]}, "other controls"),
        ({"seed": 5}, "results of seed 1, not 5"),
        ({"scenario": "building", "axes": {}}, "another scenario"),
    ],
)
def test_a_folder_of_another_campaign_is_refused_with_the_way_out(
    campaign: Make, change: dict[str, object], words: str
) -> None:
    campaign().run()
    with pytest.raises(ValueError, match=f"{words}.*choose another folder"):
        campaign(**change)


def test_results_of_another_version_are_refused(campaign: Make) -> None:
    made = campaign().run()
    manifest = made.folder / "manifest.json"
    manifest.write_text(manifest.read_text().replace(f'"{ebbtide.__version__}"', '"0.0.1"'))
    with pytest.raises(ValueError, match=r"version 0.0.1, and this is .*choose another folder"):
        campaign()
    # It was changed after it was sealed.
    with pytest.raises(OSError, match="not what was written"):
        ebbtide.Campaign.open(made.folder)
    with pytest.raises(FileNotFoundError, match="no manifest"):
        ebbtide.Campaign.open(made.folder / "chunks")
