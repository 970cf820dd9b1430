from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"


def publisher() -> ModuleType:
    spec = importlib.util.spec_from_file_location("publish", NOTEBOOKS / "publish.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_there_are_seven_notebooks() -> None:
    assert len(publisher().notebooks()) == 7


@pytest.mark.parametrize("name", [path.stem for path in sorted(NOTEBOOKS.glob("[0-9]*.py"))])
def test_a_notebook_runs_and_becomes_a_page_with_pictures(name: str, tmp_path: Path) -> None:
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    command = [sys.executable, str(NOTEBOOKS / "publish.py"), str(tmp_path), name]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=180)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / f"{name}.md").read_text()
    assert page.startswith("# ")
    assert "```python" in page
    pictures = list(tmp_path.glob("*.png"))
    assert pictures
    for picture in pictures:
        assert f"]({picture.name})" in page
