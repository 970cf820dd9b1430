#!/usr/bin/env python3
"""Draws which module of a crate uses which, from the `use` lines and paths of the source.

    scripts/modules.py             write docs/modules.md
    scripts/modules.py --check     fail if docs/modules.md is not what the code gives, or if there is
                                   a circle of imports that scripts/modules-circles.txt does not list

A node of the page is a top-level module of a crate: a file or folder directly in `src`. Circles are looked
for among these modules and among the single files of all crates, workspaces and folders of Python. Test modules are left out.
Where there is no circle, there is an order in which no arrow leads back up.
"""

import re
import sys
from pathlib import Path

import imports

ROOT = imports.ROOT
PAGE = ROOT / "docs/modules.md"
CIRCLES = ROOT / "scripts/modules-circles.txt"
# Beside the crates of the workspace.
RUST = ("firmware/src", "python/src", "fuzz/fuzz_targets", "crates/ebbtide-cli/src")
PYTHON = ("python/lib", "python/tests", "firmware", "interop", "scripts", "studies")
FOLDERS = {path.parent.name: path.parent for home in ("crates", "testbed", "studies") for path in ROOT.glob(f"{home}/*/src")}


def crates() -> list[str]:
    return sorted(folder.name for folder in FOLDERS.values())


def modules(crate: str) -> dict[str, list[Path]]:
    """The source files of each top-level module."""
    src = FOLDERS[crate] / "src"
    found: dict[str, list[Path]] = {}
    for path in imports.sources(src):
        first = path.relative_to(src).parts[0].removesuffix(".rs")
        if first not in ("lib", "main"):
            found.setdefault(first, []).append(path)
    return found


def targets(text: str, depth: int, names: set[str]) -> set[str]:
    """The top-level modules that a file names as `crate::NAME` or by as many `super` as lead there."""
    used = set()
    prefix = "(?:crate" + ("|" + "::".join(["super"] * depth) if depth else "") + ")"
    for name in re.findall(rf"(?<![\w:]){prefix}::(\w+)", text):
        used.add(name)
    for group in re.findall(rf"(?<![\w:]){prefix}::\{{((?:[^{{}}]|\{{[^{{}}]*\}})*)\}}", text):
        used.update(re.findall(r"(?:^|,)\s*(\w+)", re.sub(r"\{[^{}]*\}", "", group)))
    return used & names


def graph(crate: str) -> dict[str, set[str]]:
    found = modules(crate)
    src = FOLDERS[crate] / "src"
    uses: dict[str, set[str]] = {name: set() for name in found}
    for name, paths in found.items():
        for path in paths:
            parts = path.relative_to(src).with_suffix("").parts
            depth = len(parts) - (1 if parts[-1] == "mod" else 0)
            text = imports.flattened(path.read_text(encoding="utf-8"))
            uses[name] |= targets(text, depth, set(found)) - {name}
    return uses


def circles(uses: dict[str, set[str]]) -> list[list[str]]:
    """The strongly connected components of more than one module (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in sorted(uses[name]):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            component = []
            while not component or component[-1] != name:
                component.append(stack.pop())
            if len(component) > 1:
                found.append(sorted(component))

    for name in sorted(uses):
        if name not in index:
            visit(name)
    return sorted(found)


def between_crates() -> dict[str, set[str]]:
    names = crates()
    uses = {}
    for crate in names:
        manifest = (FOLDERS[crate] / "Cargo.toml").read_text()
        dependencies = manifest.split("[dependencies]")[-1].split("[dev-dependencies]")[0]
        uses[crate] = {name for name in names if re.search(rf"^{name}[ .=]", dependencies, re.MULTILINE)}
    return uses


def mermaid(uses: dict[str, set[str]]) -> str:
    lines = ["```mermaid", "graph TD"]
    for name in sorted(uses):
        lines.append(f"    {name}[{name}]")
        lines += [f"    {name} --> {other}" for other in sorted(uses[name])]
    return "\n".join([*lines, "```"])


def circles_of_files() -> list[tuple[str, list[str]]]:
    """The circles of each place: a crate's source, or a folder of Python."""
    found = []
    for place in sorted({*(path.parent for path in ROOT.glob("*/*/src/lib.rs")), *(ROOT / name for name in RUST)}):
        found += [(place, circle) for circle in circles(imports.rust(place))]
    for name in PYTHON:
        found += [(ROOT / name, circle) for circle in circles(imports.python(ROOT / name))]
    return [(place.relative_to(ROOT).as_posix(), [str(Path(name).relative_to(place)) for name in circle]) for place, circle in found]


def known() -> list[tuple[str, set[str]]]:
    """Each circle that is allowed: its place and the files that it may span."""
    lines = [line.split("#")[0].split() for line in CIRCLES.read_text().splitlines()]
    return [(crate, set(names)) for crate, *names in (line for line in lines if line)]


def main(arguments: list[str]) -> int:
    parts = [
        "# How modules depend on each other",
        "This page is drawn from the source by `scripts/modules.py`, and a step of `ci.sh` fails when it is out of date. An arrow leads "
        "from a crate or module to one that it uses. There is no circle of imports.",
        "## Between crates",
        mermaid(between_crates()),
    ]
    failed = False
    for crate in crates():
        uses = graph(crate)
        parts += [f"## {crate}", mermaid(uses)]
        for circle in circles(uses):
            print(f"{crate}: a circle of modules: {', '.join(circle)}")
            failed = True
    allowed, among_files = known(), circles_of_files()
    for place, circle in among_files:
        if not any(name == place and set(circle) <= names for name, names in allowed):
            print(f"{place}: a new circle of imports: {', '.join(circle)}")
            failed = True
    for place, names in allowed:
        if not any(name == place and set(circle) <= names for name, circle in among_files):
            print(f"{place}: no circle of {', '.join(sorted(names))} any more: remove it from {CIRCLES.name}")
            failed = True
    page = "\n\n".join(parts) + "\n"
    if arguments == ["--check"]:
        if PAGE.read_text(encoding="utf-8") != page:
            print(f"{PAGE.relative_to(ROOT)} is out of date: run scripts/modules.py")
            failed = True
    elif not arguments:
        PAGE.write_text(page, encoding="utf-8")
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
