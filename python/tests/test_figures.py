from __future__ import annotations

import json
import re
import zlib
from pathlib import Path
from typing import Any

import ebbtide
import pytest
from ebbtide import figures

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture(scope="module")
def result() -> ebbtide.Result:
    settings: dict[str, Any] = {"clients": [3, 6], "buffer": [1410, 14100], "exchanges": 3}
    return ebbtide.run("nb-iot", set=settings, cc=["default", "fasor"], reps=3)


@pytest.fixture(autouse=True)
def no_figures() -> Any:
    yield
    from matplotlib import pyplot

    pyplot.close("all")


def test_every_form_draws_what_the_frame_has(result: ebbtide.Result) -> None:
    frame = result.df()
    boxes = figures.box(frame)
    assert [tick.get_text() for tick in boxes.get_xticklabels()] == ["default", "fasor"]
    curves = figures.cdf(frame)
    assert len(curves.lines) == 2
    assert curves.get_xlabel() == "flow completion time (s)"
    assert curves.lines[0].get_ydata()[-1] == 1
    lines = figures.line(frame, "clients")
    assert [list(line.get_xdata()) for line in lines.lines] == [[3, 6], [3, 6]]
    own = frame[(frame["cc"] == "default") & (frame["clients"] == 3)]
    per_run = own.groupby("replication")["fct_s"].median()
    assert lines.lines[0].get_ydata()[0] == pytest.approx(per_run.mean())
    assert len(lines.collections) == 2
    grid = figures.heatmap(frame, "clients", "buffer")
    assert len(grid.texts) == 4
    events = ebbtide.replay("nb-iot", cc="default", set={"clients": 3, "exchanges": 3})
    assert "answered" in [text.get_text() for text in figures.timeline(events).legend_.texts]
    assert figures.timeline(events, client=1).get_ylabel() == "exchange"


def test_sizes_are_those_of_the_publishers_columns(result: ebbtide.Result) -> None:
    assert figures.size("ieee")[0] == 3.5
    assert figures.size("ieee", columns=2)[0] == 7.16
    assert figures.size("acm")[0] == 3.33
    width, _ = figures.cdf(result.df(), size="acm").figure.get_size_inches()
    assert width == 3.33
    with pytest.raises(ValueError, match="'elsevier' is not one of ieee, acm, screen"):
        figures.size("elsevier")
    with pytest.raises(ValueError, match="columns: must be 1 or 2"):
        figures.size("ieee", columns=3)


def test_a_pdf_tells_the_data_and_the_command_that_it_is_made_from(
    result: ebbtide.Result, tmp_path: Path
) -> None:
    axis = figures.box(result.df())
    path = figures.save(axis, tmp_path / "box.pdf", source=result)
    content = path.read_bytes()
    assert f"({result.command})".encode() in content
    keywords = re.search(rb"/Keywords \((.*?[^\\])\)", content, re.DOTALL)
    assert keywords is not None
    (drawn,) = json.loads(keywords[1])
    assert drawn["figure"] == "box"
    median = result.df().groupby("cc", observed=True)["fct_s"].median()["default"]
    assert drawn["data"]["default"][2] == pytest.approx(median, rel=1e-5)
    again = figures.save(figures.box(result.df()), tmp_path / "again.pdf", source=result)
    assert again.read_bytes() == content


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_other_files_tell_it_too(result: ebbtide.Result, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"cdf.{suffix}"
    figures.save(figures.cdf(result.df()), path, source="ebbtide run nb-iot")
    content = path.read_bytes()
    assert b"ebbtide run nb-iot" in content or b"ebbtide run nb-iot" in zlib.decompress(content)
    with pytest.raises(ValueError, match=r"'.gif' is not one of .pdf, .svg, .png"):
        figures.save(figures.cdf(result.df()), tmp_path / "cdf.gif")


def test_a_column_that_is_not_there_is_named_with_those_that_are(result: ebbtide.Result) -> None:
    with pytest.raises(ValueError, match=r"'speed' is not a column; there are .*fct_s"):
        figures.box(result.df(), "speed")


def test_controls_have_the_colours_and_dashes_of_reports(result: ebbtide.Result) -> None:
    style = Path(__file__).parents[2] / "testbed/ebbtide-report/src/style.css"
    sheet = style.read_text(encoding="utf-8")
    for place, (colour, dash) in enumerate(figures._CONTROLS.values()):
        own = re.search(rf"--k{place}: (#\w+)", sheet)
        rule = re.search(rf"\.k{place} {{[^}}]*?(?:--dash: ([\d. ]+);)? }}", sheet)
        assert own is not None and rule is not None and own[1] == colour
        lengths = [float(length) for length in (rule[1] or "").split()]
        assert (list(dash[1]) if isinstance(dash, tuple) else []) == lengths
    curves = figures.cdf(result.df()).lines
    assert [line.get_color() for line in curves] == ["#cf4f00", "#008a63"]
    frame = result.df().assign(cc=lambda own: own["cc"].astype(str).replace("fasor", "fasor:k=2"))
    assert figures.cdf(frame).lines[1].get_color() == "#008a63"
    frame["cc"] = frame["cc"].replace("default", "fasor:k=3")
    assert figures.cdf(frame).lines[1].get_color() != "#008a63"


def test_a_pdf_has_no_fonts_of_type_3(result: ebbtide.Result, tmp_path: Path) -> None:
    content = figures.save(figures.cdf(result.df()), tmp_path / "cdf.pdf").read_bytes()
    assert b"/Type3" not in content
    assert b"/FontFile2" in content
