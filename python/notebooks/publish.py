"""Runs the notebooks and writes them as pages: text, code, what it printed, pictures.

    python publish.py [FOLDER] [NAME...]     # docs/gallery, all of them

The notebooks are scripts in the form that Jupytext and most editors open as notebooks: cells begin
with ``# %%``. A cell that fails ends it with its traceback.
"""

from __future__ import annotations

import ast
import contextlib
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
GALLERY = HERE.parent.parent / "docs" / "gallery"


def notebooks() -> list[Path]:
    """Give the notebooks, in the order of the gallery."""
    return sorted(path for path in HERE.glob("[0-9]*.py"))


def cells(text: str) -> Iterator[tuple[bool, str]]:
    """Give the cells of a script: whether it is text, and what it says."""
    for cell in ("\n" + text).split("\n# %%")[1:]:
        head, _, body = cell.partition("\n")
        if "[markdown]" in head:
            lines = (line.removeprefix("#").removeprefix(" ") for line in body.splitlines())
            yield True, "\n".join(lines).strip()
        elif body.strip():
            yield False, body.strip()


def execute(code: str, scope: dict[str, Any], name: str) -> tuple[str, Any]:
    """Run a cell; give what it printed, and the value of its last line."""
    tree = ast.parse(code, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    value = None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, name, "exec"), scope)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), name, "eval"), scope)
    return printed.getvalue(), value


def shown(value: Any) -> str:
    """Give a value as text; of a frame the table."""
    if value is None or type(value).__module__.startswith("matplotlib"):
        return ""
    text = value.to_string(index=False) if hasattr(value, "to_string") else repr(value)
    return f"{text}\n"


def publish(notebook: Path, folder: Path) -> Path:
    """Run a notebook and write its page and pictures; give the page."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    folder.mkdir(parents=True, exist_ok=True)
    name = notebook.stem
    scope: dict[str, Any] = {"__name__": "__main__", "__file__": str(notebook)}
    page: list[str] = []
    pictures = 0
    for is_text, content in cells(notebook.read_text()):
        if is_text:
            page.append(content)
            continue
        printed, value = execute(content, scope, notebook.name)
        page.append(f"```python\n{content}\n```")
        if output := (printed + shown(value)).rstrip():
            page.append(f"```text\n{output}\n```")
        for number in pyplot.get_fignums():
            pictures += 1
            picture = folder / f"{name}-{pictures}.png"
            figure = pyplot.figure(number)
            figure.savefig(picture, dpi=110, metadata={"Software": None})
            page.append(f"![{name}, figure {pictures}]({picture.name})")
        pyplot.close("all")
    page.append(f"*Made by `python/notebooks/publish.py` from `python/notebooks/{notebook.name}`.*")
    path = folder / f"{name}.md"
    path.write_text("\n\n".join(page) + "\n")
    return path


def main(arguments: list[str]) -> None:
    """Publish the notebooks that are named, or all."""
    folder = Path(arguments[0]) if arguments else GALLERY
    for notebook in notebooks():
        if not arguments[1:] or notebook.stem in arguments[1:]:
            print(publish(notebook, folder), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
