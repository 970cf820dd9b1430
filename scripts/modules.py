#!/usr/bin/env python3
"""Draws which module of a crate uses which, from the `use` lines and paths of the source.

    scripts/modules.py             write docs/modules.md
    scripts/modules.py --check     fail if docs/modules.md is not what the code gives, or if there is
                                   a circle of imports that scripts/modules-circles.txt does not list

A node of the page is a top-level module of a crate: a file or folder directly in `src`. Circles are looked
for among these modules and among single files. Test modules are left out.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/modules.md"
CIRCLES = ROOT / "scripts/modules-circles.txt"
FOLDERS = {path.parent.name: path.parent for home in ("crates", "testbed", "studies") for path in ROOT.glob(f"{home}/*/src")}


def crates() -> list[str]:
    return sorted(folder.name for folder in FOLDERS.values())


def modules(crate: str) -> dict[str, list[Path]]:
    """The source files of each top-level module."""
    src = FOLDERS[crate] / "src"
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.rs"],
        cwd=src, check=True, capture_output=True, text=True,
    ).stdout.splitlines()
    found: dict[str, list[Path]] = {}
    for name in sorted(set(listed)):
        first = name.split("/")[0].removesuffix(".rs")
        if first in ("lib", "main", "tests") or name.endswith("tests.rs") or not (src / name).exists():
            continue
        found.setdefault(first, []).append(src / name)
    return found


def flattened(text: str) -> str:
    """The text without comments, strings and the test module at its end."""
    text = re.split(r"#\[cfg\((?:all\()?test", text)[0]
    text = re.sub(r"//[^\n]*", "", text)
    return re.sub(r'"(?:[^"\\]|\\.)*"', '""', text)


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
            text = flattened(path.read_text(encoding="utf-8"))
            uses[name] |= targets(text, depth, set(found)) - {name}
    return uses


def files(crate: str) -> dict[str, set[str]]:
    """Which source file of a crate imports which: the file of the longest path of modules that a name has."""
    src = FOLDERS[crate] / "src"
    places: dict[tuple[str, ...], str] = {}
    for path in (path for paths in modules(crate).values() for path in paths):
        parts = path.relative_to(src).with_suffix("").parts
        places[parts[:-1] if parts[-1] == "mod" else parts] = str(path.relative_to(src))
    uses: dict[str, set[str]] = {name: set() for name in places.values()}
    for own, name in places.items():
        for names in imports(flattened((src / name).read_text(encoding="utf-8"))):
            above = 0
            while names[above : above + 1] == ["super"]:
                above += 1
            if above > len(own) or (not above and names[0] not in ("crate", "self")):
                continue
            base = list(own[: len(own) - above]) if above or names[0] == "self" else []
            whole = (*base, *names[max(above, 1) :])
            found = (whole[:end] for end in range(len(whole), 0, -1) if whole[:end] in places)
            target = next(found, None)
            # A module above hands on names of its files; its own declarations are no import.
            if target is not None and target != own[: len(target)]:
                uses[name].add(places[target])
    return uses


def imports(text: str) -> list[list[str]]:
    """The paths of all `use` lines and of names that begin with `crate` or `super`, groups taken apart."""
    found: list[list[str]] = []

    def take(prefix: list[str], rest: str) -> None:
        head, brace, inner = rest.partition("{")
        path = [*prefix, *re.findall(r"\w+", head.split(" as ")[0])]
        if not brace:
            found.append(path)
            return
        depth, start = 0, 0
        inner = inner[: inner.rfind("}")]
        for place, char in enumerate(inner + ","):
            depth += (char == "{") - (char == "}")
            if char == "," and depth == 0:
                if inner[start:place].strip():
                    take(path, inner[start:place])
                start = place + 1

    for line in re.findall(r"(?:^|\s)use ((?:crate|super|self)[^;]*);", text):
        take([], line)
    found += [path.split("::") for path in re.findall(r"(?<![\w:])((?:crate|super)(?:::\w+)+)", text)]
    return [path for path in found if path]


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


def mermaid(uses: dict[str, set[str]], in_circle: set[str]) -> str:
    lines = ["```mermaid", "graph TD"]
    for name in sorted(uses):
        lines.append(f"    {name}[{name}]" + (":::circle" if name in in_circle else ""))
        lines += [f"    {name} --> {other}" for other in sorted(uses[name])]
    if in_circle:
        lines.append("    classDef circle stroke-width:3px,stroke-dasharray:4")
    return "\n".join([*lines, "```"])


def known() -> list[tuple[str, set[str]]]:
    """Each circle that is allowed: its crate and the modules or files that it may span."""
    lines = [line.split("#")[0].split() for line in CIRCLES.read_text().splitlines()]
    return [(crate, set(names)) for crate, *names in (line for line in lines if line)]


def main(arguments: list[str]) -> int:
    parts = [
        "# How modules depend on each other",
        "This page is drawn from the source by `scripts/modules.py`, and a step of `ci.sh` fails when it is out of date. An arrow leads "
        "from a crate or module to one that it uses. Modules with a dashed border belong to a circle of imports; no new circle may be "
        "added.",
        "## Between crates",
        mermaid(between_crates(), set()),
    ]
    failed = False
    allowed = known()
    for crate in crates():
        uses = graph(crate)
        found = circles(uses)
        among_files = circles(files(crate))
        parts += [f"## {crate}", mermaid(uses, {name for circle in found for name in circle})]
        if found:
            parts.append("Circles of imports:\n\n" + "\n".join("- " + ", ".join(f"`{n}`" for n in c) for c in found))
        for circle in found + among_files:
            if not any(name == crate and set(circle) <= names for name, names in allowed):
                print(f"{crate}: a new circle of imports: {', '.join(circle)}")
                failed = True
        for name, names in allowed:
            if name == crate and not any(set(circle) <= names for circle in found + among_files):
                print(f"{crate}: no circle of {', '.join(sorted(names))} any more: remove it from {CIRCLES.name}")
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
