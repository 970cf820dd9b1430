#!/usr/bin/env python3
"""The width of Rust sources: rustfmt breaks code at 100 columns, but neither comments nor strings.

    scripts/width.py                     list the lines that are longer than 120 columns, and fail if there are any
    scripts/width.py --write [FILE...]   break the paragraphs of comments that have such a line anew, at 100 columns

scripts/budgets.py sees to it that their number only shrinks.
"""

import re
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LONGEST, WIDTH = 120, 100
COMMENT = re.compile(r"(\s*)(//[/!]?)( ?)(.*)$")
# Begins a paragraph of its own: an item of a list, with what its next lines are indented by.
ITEM = re.compile(r"([-*] |\d+\. )")
# Is never broken or joined: tables, headings, link targets.
FIXED = re.compile(r"[|#]|\[[^]]*\]: ")


def sources() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "*.rs"], cwd=ROOT, check=True, capture_output=True, text=True)
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).exists()]


def is_long(line: str) -> bool:
    # A link, a table or a string without a place to break stays as it is.
    found = COMMENT.match(line)
    text = found[4] if found else line.strip()
    return len(line) > LONGEST and not FIXED.match(text) and (found is not None or '"' not in line)


def broken(lines: list[str]) -> list[str]:
    """The lines of a file, with long paragraphs of comments broken anew."""
    out: list[str] = []
    paragraph: list[str] = []
    start = ""
    fenced = False

    def end() -> None:
        if any(map(is_long, paragraph)):
            head = COMMENT.match(paragraph[0])
            words = " ".join(COMMENT.match(line)[4].strip() for line in paragraph)
            item = ITEM.match(words)
            later = start + " " * len(item[0]) if item else start
            out.extend(textwrap.wrap(words, WIDTH, initial_indent=head[1] + head[2] + " ", subsequent_indent=later,
                                     break_long_words=False, break_on_hyphens=False))
        else:
            out.extend(paragraph)
        paragraph.clear()

    for line in lines:
        found = COMMENT.match(line)
        text = found[4] if found else ""
        if found and text.startswith("```"):
            fenced = not fenced
        own = f"{found[1]}{found[2]} " if found else ""
        if not found or fenced or not text or text.startswith(("```", "    ")) or FIXED.match(text):
            end()
            out.append(line)
            fenced = fenced and found is not None
            continue
        if own != start or ITEM.match(text):
            end()
        start = own
        paragraph.append(line)
    end()
    return out


def too_long() -> list[str]:
    """The lines that are too long, with their places."""
    return [
        f"{path.relative_to(ROOT)}:{number}: {len(line)} columns, more than {LONGEST}"
        for path in sources()
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1)
        if is_long(line)
    ]


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--write"]:
        for path in map(Path.absolute, map(Path, arguments[1:])) if arguments[1:] else sources():
            lines = path.read_text(encoding="utf-8").split("\n")
            if any(map(is_long, lines)):
                path.write_text("\n".join(broken(lines)), encoding="utf-8")
    long = too_long()
    print(*long, f"{len(long)} lines of Rust are too long", sep="\n")
    return 1 if long else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
