#!/usr/bin/env python3
"""Builds the documentation as a site with mdBook.

    scripts/book.py OUT [--mermaid FILE]     mdbook must be on PATH

The book consists of docs/, studies/ and the documents at the top of the repository. Links between them stay
links within the site; links to other files of the repository lead to its public location. FILE is
mermaid.min.js; without it state diagrams are shown as their source.
"""

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOP = ["ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"]
REPOSITORY = re.search(r'^repository = "([^"]+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE).group(1)
LINK = re.compile(r"(\]\()([^)\s]+)(\))")

CONFIG = """[book]
title = "Ebbtide"
language = "en"
src = "src"

[output.html]
site-url = "/"
git-repository-url = "{repository}"
additional-css = ["site.css"]
additional-js = [{scripts}]
smart-punctuation = false

[output.html.fold]
enable = true
level = 0
"""
# Tables and diagrams wider than the screen scroll by themselves rather than with the page. Names in the
# first column of a table are not broken at their hyphens.
STYLE = """
:root { --content-max-width: 900px; }
.table-wrapper { overflow-x: auto; }
.content table th, .content table td { padding: 3px 10px; }
.content td:first-child code { white-space: nowrap; }
pre.mermaid { background: transparent; overflow-x: auto; }
.content img { max-width: 100%; background: #fff; }
@media print {
  .table-wrapper { overflow: visible; }
  .content table { font-size: 0.6em; }
  .content table th, .content table td { padding: 2px; }
  .content td:first-child code { white-space: normal; }
}
"""
DIAGRAMS = """
document.querySelectorAll("code.language-mermaid").forEach((code) => {
  const block = document.createElement("pre");
  block.className = "mermaid";
  block.textContent = code.textContent;
  code.parentElement.replaceWith(block);
});
const dark = /coal|navy|ayu/.test(document.documentElement.className);
mermaid.initialize({ startOnLoad: true, theme: dark ? "dark" : "default" });
"""


def rewritten(text: str, place: Path, inside: dict[Path, Path]) -> str:
    """The text of the document `place` with its links as the site needs them."""

    def link(match: re.Match[str]) -> str:
        target = match.group(2)
        if re.match(r"[a-z][a-z+.-]*:", target) or target.startswith("#"):
            return match.group()
        name, mark, anchor = target.partition("#")
        path = (place.parent / name).resolve()
        if path in inside and path.name != "SUMMARY.md":
            here = inside[place].parent
            up = "../" * len(here.parts)
            return f"{match.group(1)}{up}{inside[path].as_posix()}{mark}{anchor}{match.group(3)}"
        kind = "tree" if path.is_dir() else "blob"
        return f"{match.group(1)}{REPOSITORY}/{kind}/main/{path.relative_to(ROOT)}{mark}{anchor}{match.group(3)}"

    out, fenced = [], False
    for line in text.splitlines():
        if re.match(r"\s*(```|~~~)", line):
            fenced = not fenced
        out.append(line if fenced else LINK.sub(link, line))
    return "\n".join(out) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--mermaid", type=Path)
    arguments = parser.parse_args()
    out = arguments.out.resolve()
    shutil.rmtree(out, ignore_errors=True)
    src = out / "src"
    docs = ROOT / "docs"
    inside = {path: path.relative_to(docs) for path in docs.rglob("*") if path.is_file()}
    inside |= {ROOT / name: Path("project") / name for name in TOP}
    inside |= {path: path.relative_to(ROOT) for path in (ROOT / "studies").rglob("*") if path.suffix in (".md", ".svg")}
    inside[ROOT / "README.md"] = Path("README.md")
    for path, name in inside.items():
        to = src / name
        to.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            text = rewritten(path.read_text(encoding="utf-8"), path, inside)
            to.write_text(text, encoding="utf-8")
        else:
            shutil.copy(path, to)
    scripts = []
    if arguments.mermaid:
        shutil.copy(arguments.mermaid, out / "mermaid.min.js")
        (out / "diagrams.js").write_text(DIAGRAMS)
        scripts = ["mermaid.min.js", "diagrams.js"]
    (out / "site.css").write_text(STYLE)
    names = ", ".join(f'"{name}"' for name in scripts)
    (out / "book.toml").write_text(CONFIG.format(repository=REPOSITORY, scripts=names))
    subprocess.run(["mdbook", "build", str(out)], check=True)
    pages = list((out / "book").rglob("*.html"))
    print(f"{len(pages)} pages in {out / 'book'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
