from __future__ import annotations

from pathlib import Path

import ebbtide
import pytest

pytest.importorskip("optuna")

NETWORK = ("nb-iot", {"clients": 20, "exchanges": 4})


def test_settings_that_are_better_than_the_defaults_are_found() -> None:
    tuning = ebbtide.tune("default", [NETWORK], "fct_s.p90", trials=15, reps=1)
    name, *settings = tuning.best.split(":")
    assert name == "default"
    assert {one.split("=")[0] for one in settings} == {"ack-timeout", "bound"}
    assert tuning.values[0] <= 1.0
    again = ebbtide.run(*NETWORK[:1], set=NETWORK[1], cc=["default", tuning.best], reps=1, seed=1)
    default, best = again.summary()["fct_s.p90"]
    assert best / default == pytest.approx(tuning.values[0])
    lines = tuning.toml().splitlines()
    assert lines[0] == "[control.default]"
    assert lines[1].startswith("ack-timeout = ")
    assert len(tuning.trials()) == 15


def test_the_configuration_to_paste_is_the_one_that_was_found() -> None:
    import tomllib

    tuning = ebbtide.tune("default", [NETWORK], trials=5, reps=1)
    document = tomllib.loads(ebbtide.scenario("nb-iot").text)
    tuned = tomllib.loads(tuning.toml())["control"]["default"]
    document["control"].setdefault("default", {}).update(tuned)
    pasted = ebbtide.run(document, set=NETWORK[1], cc="default", reps=1, seed=1).df()
    named = ebbtide.run("nb-iot", set=NETWORK[1], cc=[tuning.best], reps=1, seed=1).df()
    assert list(pasted["fct_ns"]) == list(named["fct_ns"])


def test_several_objectives_give_a_front_and_constraints_hold_on_it(tmp_path: Path) -> None:
    both = ("fct_s.median", "unnecessary_retransmissions.median")
    journal = tmp_path / "study.log"
    ebbtide.tune("default", [NETWORK], both, trials=8, reps=1, storage=journal)
    tuning = ebbtide.tune("default", [NETWORK], both, trials=8, reps=1, storage=journal)
    assert len(tuning.trials()) == 16
    front = tuning.front()
    assert front[both[0]].is_monotonic_increasing
    assert front[both[1]].is_monotonic_decreasing or len(front) == 1
    with pytest.raises(ValueError, match="no trial meets the constraint"):
        impossible = {"fct_s.max": 1e-6}
        ebbtide.tune("default", [NETWORK], constraint=impossible, trials=2, reps=1).best  # noqa: B018


def test_a_rate_that_made_the_measurements_is_found_within_its_interval() -> None:
    truth = {"clients": 10, "exchanges": 10}
    events = ebbtide.replay(
        "nb-iot", cc="default", set={**truth, "network.down.rate": "45 kbit/s"}, seed=9
    )
    begun = events[(events["event"] == "sent") & (events["ordinal"] == 0)]
    both = events[events["event"] == "answered"].merge(begun, on=["client", "exchange"])
    found = ebbtide.calibrate(
        "nb-iot",
        (both["t_x"] - both["t_y"]).to_list(),
        {"network.down.rate": (5, 300, "kbit/s")},
        figure="exchange_duration_s",
        set=truth,
        trials=30,
        reps=1,
    )
    low, high = found.interval["network.down.rate"]
    assert low <= 45 <= high
    assert high < 150
    assert found.best["network.down.rate"].endswith("kbit/s")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"objective": "speed"}, r"objective: 'speed' is not one of fct_s\.median"),
        ({"constraint": {"speed": 1.0}}, "'speed'"),
        ({"trials": 0}, "trials: must be from 1"),
        ({"networks": []}, "networks: takes at least one"),
        ({"control": "fasr"}, "did you mean 'fasor'"),
        ({"ranges": {"acktimeout": (1.0, 2.0)}}, "did you mean 'ack-timeout'"),
    ],
)
def test_a_parameter_that_cannot_be_tuned_is_refused_by_name(
    change: dict[str, object], words: str
) -> None:
    arguments: dict[str, object] = {"control": "default", "networks": [NETWORK], "reps": 1}
    with pytest.raises(ValueError, match=words):
        ebbtide.tune(**{**arguments, **change})  # type: ignore[arg-type]


def test_measurements_that_are_none_are_refused() -> None:
    free = {"network.down.rate": (5.0, 300.0, "kbit/s")}
    with pytest.raises(ValueError, match="at least ten"):
        ebbtide.calibrate("nb-iot", [1.0], free)
    with pytest.raises(ValueError, match="above zero"):
        ebbtide.calibrate("nb-iot", [1.0] * 9 + [-1.0], free)
    with pytest.raises(ValueError, match="free"):
        ebbtide.calibrate("nb-iot", [1.0] * 10, {})
