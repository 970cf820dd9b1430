#!/usr/bin/env python3
"""What the tree weighs beside its limits: its goals, or where it is beyond one, a number that may only shrink.

    scripts/budgets.py            print each number beside its limit; fail if one is larger
    scripts/budgets.py --lower    write smaller numbers as the new limits
"""

import collections
import json
import re
import subprocess
import sys
from pathlib import Path

import width

ROOT = Path(__file__).resolve().parent.parent
LIMITS = ROOT / "scripts/budgets.json"
# Where each number is to go.
GOALS = {
    "words in documents": 55_000,
    "test programs": 10,
    "tuples as parameters": 0,
    "type names that stand for more than two types": 20,
    "lines of Rust that are too long": 0,
}
GENERATED = r"interop-matrix|modules\.md|gallery|cli\.md|scenario-keys\.md|controls/settings\.md"


def tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True)
    return [name for name in listed.stdout.splitlines() if (ROOT / name).exists()]


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def measured() -> dict[str, int]:
    names = tracked()
    sources = [
        name for name in names
        if re.match(r"(crates|testbed|studies)/[^/]+/src/.*\.rs$", name) and not re.search(r"(^|/)(tests?|testing)(/|\.rs$)", name)
    ]
    tuples, types = 0, collections.Counter()
    for name in sources:
        text = re.split(r"#\[cfg\(test\)\]\s*mod \w+ \{", read(name))[0]
        tuples += len(re.findall(r"(?:^\s*|[(,] ?)\((?:mut )?\w+(?:, (?:mut )?\w+)+\): ?\(", text, re.M))
        # An indented `type` is an associated one: its trait has named it.
        types.update(re.findall(r"^\s*(?:pub(?:\([^)]*\))? )?(?:struct|enum|trait) (\w+)", text, re.M))
        types.update(re.findall(r"^(?:pub(?:\([^)]*\))? )?type (\w+)", text, re.M))
    documents = [
        name for name in names
        if name.endswith(".md") and re.match(r"(README|ARCHITECTURE|CONTRIBUTING|CHANGELOG|docs/)", name)
        and not re.search(GENERATED, name)
    ]
    programs = [name for name in names if re.match(r"(crates|testbed|studies)/[^/]+/tests/([^/]+\.rs|[^/]+/main\.rs)$", name)]
    return {
        "words in documents": sum(len(read(name).split()) for name in documents),
        "test programs": len(programs),
        "tuples as parameters": tuples,
        "type names that stand for more than two types": sum(1 for count in types.values() if count > 2),
        "lines of Rust that are too long": len(width.too_long()),
    }


def main(arguments: list[str]) -> int:
    limits = json.loads(LIMITS.read_text(encoding="utf-8")) if LIMITS.exists() else {}
    now = measured()
    failed = False
    for what, number in now.items():
        limit = max(limits.get(what, number), GOALS[what])
        print(f"{what}: {number}, at most {limit}" + (f", goal {GOALS[what]}" if GOALS[what] < limit else ""))
        failed |= number > limit
    if arguments == ["--lower"]:
        lower = {what: min(number, limits.get(what, number)) for what, number in now.items()}
        LIMITS.write_text(json.dumps(lower, indent=4) + "\n", encoding="utf-8")
        return 0
    if failed:
        print("larger than the limit: take away as much as was added, elsewhere if need be")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
