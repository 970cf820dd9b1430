from __future__ import annotations

import subprocess
from pathlib import Path

import ebbtide
import pytest


@pytest.fixture
def capture(cli: str, tmp_path: Path) -> Path:
    path = tmp_path / "mine.pcapng"
    command = [cli, "replay", "nb-iot", "--cc", "default", "--pcap", str(path)]
    for setting in ("clients=30", "exchanges=10", "buffer=1400"):
        command += ["--set", setting]
    subprocess.run(command, check=True, capture_output=True)
    return path


def test_a_fit_is_that_of_the_command_line(cli: str, capture: Path) -> None:
    found = ebbtide.fit(capture)
    printed = subprocess.run([cli, "fit", str(capture)], check=True, capture_output=True).stdout
    assert found.scenario.text == printed.decode()
    assert found.taken_at == "link"
    down = found.figures["network.down.rate"]
    assert down.known and down.unit == "bit/s"
    assert down.value == pytest.approx(30_000, rel=0.02)
    assert found.figures["round_trip"].value == pytest.approx(0.66, rel=0.05)


def test_the_scenario_can_be_run(capture: Path) -> None:
    found = ebbtide.fit(capture, name="ours")
    assert found.scenario.place == "ours"
    frame = ebbtide.run(found.scenario, cc=["default"], reps=1).summary()
    assert len(frame) == 1


def test_what_cannot_be_fitted_is_refused_by_name(tmp_path: Path) -> None:
    text = tmp_path / "text.pcap"
    text.write_text("no packets here")
    with pytest.raises(ValueError, match=r"text\.pcap: is not a capture"):
        ebbtide.fit(text)
    with pytest.raises(OSError):
        ebbtide.fit(tmp_path / "missing.pcap")
    with pytest.raises(ValueError, match="taken_at: 'moon' is not clients, server or link"):
        ebbtide.fit(text, taken_at="moon")
    with pytest.raises(ValueError, match="port: must be from 1 to 65535"):
        ebbtide.fit(text, port=0)
    with pytest.raises(TypeError, match="capture: takes a path, not int"):
        ebbtide.fit(7)  # type: ignore[arg-type]
