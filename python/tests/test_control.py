"""Congestion controls that are written in Python."""

from __future__ import annotations

import concurrent.futures as futures
import subprocess
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ebbtide
import pytest
from ebbtide.control import Context, Sample, Slot, Transmission

#: A cell that loses packets, so that timeouts matter.
CROWD: dict[str, int | str] = {"clients": 10, "exchanges": 10, "errors": "high"}


class Rfc(ebbtide.Control):
    """What ``default`` is: binary exponential backoff from a random timeout."""

    def on_transmit(self, transmission: Transmission, slot: Slot, cx: Context) -> float:
        if transmission.ordinal > 0:
            return 2 * slot.armed
        return cx.uniform(cx.ack_timeout, cx.ack_timeout * cx.ack_random_factor)


class Doubling(ebbtide.Control):
    def __init__(self, factor: float = 3.0, spread: bool = True) -> None:
        if not 1 <= factor <= 16:
            raise ValueError(f"factor: must be from 1 to 16, not {factor}")
        self.factor, self.spread = factor, spread
        self.round_trip: float | None = None

    def on_transmit(self, transmission: Transmission, slot: Slot, cx: Context) -> float:
        first = self.factor * (self.round_trip or cx.ack_timeout)
        if self.spread:
            first = cx.uniform(first, 1.5 * first)
        return float(first * 2**transmission.ordinal)

    def on_feedback(self, slot: Slot, sample: Sample, cx: Context) -> None:
        if sample.retransmissions == 0:
            self.round_trip = sample.since_first


class Broken(Rfc):
    def on_feedback(self, slot: Slot, sample: Sample, cx: Context) -> None:
        self.explain(sample)

    def explain(self, sample: Sample) -> None:
        raise LookupError(f"no explanation for {sample.transmissions}")


def run(cc: Any, **arguments: Any) -> ebbtide.Result:
    return ebbtide.run("nb-iot", set=CROWD, cc=cc, **{"reps": 2, **arguments})


def times(result: ebbtide.Result | ebbtide.Campaign, cc: str) -> list[int]:
    frame = result.df()
    found: list[int] = frame[frame["cc"] == cc]["fct_ns"].to_list()
    return found


def test_the_same_algorithm_in_python_gives_what_the_built_in_control_gives() -> None:
    result = run(["default:bound=none", Rfc])
    assert times(result, "rfc") == times(result, "default:bound=none")
    summary = result.summary()
    assert (
        list(summary["unnecessary_retransmissions.median"])
        == [summary["unnecessary_retransmissions.median"][0]] * 2
    )


def test_any_number_of_threads_and_any_executor_give_the_same_results(tmp_path: Path) -> None:
    cc: Sequence[ebbtide.control.ControlLike] = ["default", Doubling, Doubling(factor=6)]
    one = run(cc, jobs=1, reps=4)
    assert len(set(times(one, "doubling"))) > 10
    several = run(cc, jobs=4, reps=4)
    assert several.arrow().equals(one.arrow())
    threads = ebbtide.Campaign("nb-iot", CROWD, cc, 4, folder=tmp_path / "threads")
    assert threads.run(jobs=2, chunk_seconds=0.01).arrow().equals(one.arrow())
    processes = ebbtide.Campaign("nb-iot", CROWD, cc, 4, folder=tmp_path / "processes")
    with futures.ProcessPoolExecutor(2) as executor:
        processes.run(executor, chunk_seconds=0.01)
    assert processes.arrow().equals(one.arrow())


def test_settings_are_parameters_of_the_class_as_text_or_as_an_object() -> None:
    result = run([Doubling, "doubling:factor=6", "doubling:spread=off:nstart=2"])
    assert list(dict.fromkeys(result.df()["cc"])) == [
        "doubling",
        "doubling:factor=6",
        "doubling:spread=off:nstart=2",
    ]
    objects = run([Doubling(factor=6.0)])
    assert list(dict.fromkeys(objects.df()["cc"])) == ["doubling:factor=6.0"]
    assert times(objects, "doubling:factor=6.0") == times(result, "doubling:factor=6")
    assert times(result, "doubling:factor=6") != times(result, "doubling")


@pytest.mark.parametrize(
    ("cc", "kind", "words"),
    [
        ([Doubling, "doubling:factor=99"], ValueError, "factor: must be from 1 to 16, not 99"),
        ([Doubling, "doubling:factor=much"], ValueError, "factor: takes a number, not 'much'"),
        ([Doubling, "doubling:spread=1"], ValueError, "spread: takes on or off, not '1'"),
        ([Doubling, "doubling:speed=1"], ValueError, "no setting of doubling is named 'speed'"),
        ([Doubling, "dubling"], ValueError, "did you mean 'doubling'"),
        ([Doubling, Doubling], ValueError, "'doubling' is named twice"),
        ([int], TypeError, r"cc: takes names .* not int"),
        (["default", 3], TypeError, r"cc: takes names .* not int"),
        ([type("Default", (Rfc,), {})], ValueError, "another congestion control is named"),
        ([type("Odd", (Rfc,), {"name": "a b"})], ValueError, "cannot name a congestion control"),
        ([type("Odd", (Rfc,), {"marking": "ink"})], ValueError, "'ink' is not one of none, token"),
    ],
)
def test_an_invalid_control_is_refused_by_name(
    cc: list[Any], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        run(cc)


def test_a_parameter_without_a_default_is_refused() -> None:
    class Needy(Rfc):
        def __init__(self, factor: float) -> None:
            self.factor = factor

    with pytest.raises(TypeError, match=r"Needy: the parameter 'factor' of __init__ needs"):
        run([Needy])


def explained(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


def test_an_error_in_a_control_is_raised_with_its_traceback(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(LookupError, match="no explanation for 1") as raised:
        run(["default", Broken])
    text = explained(raised.value)
    assert "in on_feedback" in text and "in explain" in text
    assert "panicked" not in capfd.readouterr().err
    # It is an error of the program, not of a replication: nothing is kept as failed.
    made = ebbtide.Campaign("nb-iot", CROWD, ["default", Broken], 2, folder=tmp_path)
    with pytest.raises(LookupError) as raised:
        made.run(jobs=2, chunk_seconds=0.001)
    assert "in explain" in explained(raised.value)
    assert made.failed() == []
    with futures.ProcessPoolExecutor(1) as executor, pytest.raises(LookupError) as raised:
        made.run(executor, chunk_seconds=0.001)
    assert "in explain" in explained(raised.value)


@pytest.mark.parametrize(
    ("method", "returned", "words"),
    [
        ("on_transmit", None, "rfc.on_transmit: returns seconds, at least 0, not None"),
        ("on_transmit", -1.0, "not -1.0"),
        ("on_transmit", float("nan"), "not nan"),
        ("on_expire", "again", "on_expire: returns None, 'repeat' or 'probe', not 'again'"),
        ("admit", "never", "admit: returns None, 'blocked', .* not 'never'"),
        ("poll_timeout", "soon", "poll_timeout: returns a time in seconds, .* not 'soon'"),
    ],
)
def test_a_wrong_decision_is_a_type_error_that_names_the_method(
    method: str, returned: object, words: str
) -> None:
    kind = type("Rfc", (Rfc,), {method: lambda self, *arguments: returned})
    with pytest.raises(TypeError, match=words):
        run([kind])


def test_every_method_is_called_in_the_order_of_the_contract() -> None:
    calls: list[str] = []

    class Watched(Rfc):
        def admit(self, message: Any, load: Any, cx: Context) -> None:
            calls.append(f"admit {message.confirmable} {load.open}")

        def on_transmit(self, transmission: Transmission, slot: Slot, cx: Context) -> float:
            slot.tag = transmission.ordinal + 1
            slot.base = 1.5
            calls.append(f"transmit {transmission.kind} {transmission.ordinal}")
            return super().on_transmit(transmission, slot, cx)

        def on_expire(self, slot: Slot, cx: Context) -> Any:
            calls.append(f"expire {slot.tag} {slot.base}")

        def on_feedback(self, slot: Slot, sample: Sample, cx: Context) -> None:
            assert slot.tag == sample.transmissions == sample.retransmissions + 1
            assert 0 < sample.since_last <= sample.since_first <= cx.now
            calls.append("feedback")

        def on_close(self, slot: Slot, outcome: str, retransmissions: int, cx: Context) -> None:
            calls.append(f"close {outcome} {retransmissions}")

    settings: dict[str, Any] = {"clients": 1, "exchanges": 30, "errors": "high"}
    ebbtide.run("nb-iot", set=settings, cc=[Watched], reps=1, jobs=1)
    assert calls[:4] == ["admit True 0", "transmit message 0", "feedback", "close acknowledged 0"]
    assert calls.count("admit True 0") == 30
    again = calls.index("transmit message 1")
    assert calls[again - 1] == "expire 1 1.5"
    assert "close acknowledged 1" in calls


def test_nothing_is_drawn_outside_of_a_call() -> None:
    kept: list[Context] = []

    class Keeping(Rfc):
        def on_feedback(self, slot: Slot, sample: Sample, cx: Context) -> None:
            kept.append(cx)

    run([Keeping], reps=1)
    with pytest.raises(RuntimeError, match="draws only inside of a call"):
        kept[0].uniform(1.0, 2.0)


def variant(factor: float) -> type[ebbtide.Control]:
    """A class of the same name with other code."""

    class Edited(Rfc):
        def on_transmit(self, transmission: Transmission, slot: Slot, cx: Context) -> float:
            return factor * super().on_transmit(transmission, slot, cx)

    Edited.version = str(factor)
    return Edited


def test_a_control_whose_code_changed_is_computed_again(tmp_path: Path) -> None:
    first = run([variant(1.0)], out=tmp_path)
    assert run([variant(1.0)], out=tmp_path).reused == 2
    second = run([variant(3.0)], out=tmp_path)
    assert second.reused == 0
    assert times(second, "edited") != times(first, "edited")
    source = "class Same(Rfc):\n    def on_close(self, *a): self.last = {}\n"
    digests = []
    for value in ("1", "1  # a comment", "2"):
        scope: dict[str, Any] = {"Rfc": Rfc}
        exec(source.format(value), scope)
        digests.append(ebbtide.control._digest(scope["Same"]))
    assert digests[0] == digests[1] != digests[2]


def test_a_folder_with_such_results_is_opened_with_the_class(tmp_path: Path) -> None:
    made = ebbtide.Campaign("nb-iot", CROWD, ["default", Doubling], 2, folder=tmp_path).run()
    with pytest.raises(ValueError, match="doubling"):
        ebbtide.Campaign.open(tmp_path)
    opened = ebbtide.Campaign.open(tmp_path, controls=[Doubling])
    assert len(opened.missing()) == 0
    assert opened.arrow().equals(made.arrow())
    compared = opened.compare("default", "doubling")
    assert list(compared["pairs"]) == [2]


def test_events_of_one_replication_can_be_replayed() -> None:
    events = ebbtide.replay("nb-iot", set={"clients": 3, "exchanges": 2}, cc=Doubling)
    assert len(events[events["event"] == "answered"]) == 6


def test_a_class_of_the_main_program_works_on_its_own(tmp_path: Path) -> None:
    """As a stranger types it, without annotations."""
    program = tmp_path / "mine.py"
    program.write_text(
        "import ebbtide\n"
        "class Patient(ebbtide.Control):\n"
        "    def on_transmit(self, transmission, slot, cx):\n"
        "        return 10\n"
        "result = ebbtide.run('nb-iot', set={'clients': 5, 'exchanges': 2}, cc=Patient, reps=1)\n"
        "print(result.json()['cells'][0]['cc'])\n"
    )
    done = subprocess.run([sys.executable, program], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "patient\n"), done.stderr
