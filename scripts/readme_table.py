#!/usr/bin/env python3
"""Whether the main job of the README prints the table that the README shows: scripts/readme_table.py PROGRAM"""

import difflib
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

README = Path(__file__).resolve().parent.parent / "README.md"


def main() -> int:
    program, text = sys.argv[1], README.read_text(encoding="utf-8")
    command = re.search(r"^ {4}cargo run --release -- (run .*) --out (\S+)$", text, re.MULTILINE)
    shown = re.search(r"^```text\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    if command is None or shown is None:
        sys.exit(f"{README.name} does not show the main job and its table")
    with tempfile.TemporaryDirectory() as folder:
        arguments = [*shlex.split(command[1]), "--out", folder]
        run = subprocess.run([program, *arguments], check=True, capture_output=True, text=True)
        printed = run.stdout.replace(folder, command[2])
    difference = list(difflib.unified_diff(shown[1].splitlines(), printed.splitlines(), README.name, "printed", lineterm=""))
    print("\n".join(difference))
    return 1 if difference else 0


if __name__ == "__main__":
    sys.exit(main())
