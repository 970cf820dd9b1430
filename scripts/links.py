#!/usr/bin/env python3
"""Checks the links of all tracked Markdown files: the file exists, and so does the heading.

    scripts/links.py            fails if a link within the repository leads nowhere, or if docs/SUMMARY.md
                                lists a page twice or leaves one out

Links to other hosts are not followed. An anchor is the heading's text as GitHub and mdBook derive it.
"""

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"!?\[(?:[^\]\\]|\\.)*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")


def visible(path: Path) -> list[tuple[int, str]]:
    """The lines outside of code blocks."""
    lines, fence = [], None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        mark = re.match(r"\s*(```+|~~~+)", line)
        if fence:
            if mark and line.strip().startswith(fence):
                fence = None
        elif mark:
            fence = mark.group(1)
        else:
            lines.append((number, line))
    return lines


@cache
def anchors(path: Path) -> frozenset[str]:
    found: set[str] = set()
    for _, line in visible(path):
        heading = re.match(r"#{1,6}\s+(.*?)\s*#*$", line)
        found.update(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", line))
        if heading:
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.group(1))
            slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            unique, n = slug, 1
            while unique in found:
                unique, n = f"{slug}-{n}", n + 1
            found.add(unique)
    return frozenset(found)


def problems(path: Path) -> list[str]:
    wrong = []
    for number, line in visible(path):
        for target in LINK.findall(re.sub(r"`[^`]*`", "", line)):
            if re.match(r"[a-z][a-z+.-]*:", target):
                continue
            name, _, anchor = target.partition("#")
            to = (path.parent / name).resolve() if name else path
            where = f"{path.relative_to(ROOT)}:{number}: {target}"
            if not to.exists():
                wrong.append(f"{where}: there is no such file")
            elif not to.is_relative_to(ROOT):
                wrong.append(f"{where}: outside of the repository")
            elif anchor and to.suffix == ".md" and anchor not in anchors(to):
                wrong.append(f"{where}: no heading gives this anchor")
    return wrong


def summary() -> list[str]:
    """Pages that the site's summary lists twice or leaves out."""
    docs = ROOT / "docs"
    listed = LINK.findall((docs / "SUMMARY.md").read_text(encoding="utf-8"))
    pages = [path.relative_to(docs).as_posix() for path in docs.rglob("*.md")]
    pages += [f"../studies/{path.name}" for path in (ROOT / "studies").glob("*.md")]
    twice = [f"docs/SUMMARY.md: {name} is listed twice" for name in sorted(set(listed)) if listed.count(name) > 1]
    missing = [f"docs/SUMMARY.md: {name} is not listed" for name in sorted(pages) if name not in [*listed, "SUMMARY.md"]]
    return twice + missing


def main() -> int:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout.splitlines()
    paths = [ROOT / name for name in sorted(set(listed)) if (ROOT / name).exists()]
    wrong = [problem for path in paths for problem in problems(path)]
    wrong += summary()
    print("\n".join(wrong + [f"{len(wrong)} broken links in {len(paths)} files"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
