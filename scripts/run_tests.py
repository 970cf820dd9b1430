#!/usr/bin/env python3
"""Builds the tests and runs their programs, two at a time: scripts/run_tests.py [cargo test's options] [-- the tests' options]

`cargo test` runs one program after the other, and the longest ones mostly wait: for other implementations, for losses to be repeated.
"""

import concurrent.futures
import json
import os
import subprocess
import sys
from pathlib import Path

AT_ONCE = 2
LONGEST = ("interop", "it")  # begin first


def programs(options: list[str]) -> list[tuple[str, Path, str]]:
    """Target, folder and executable of each test program."""
    command = ["cargo", "test", "--no-run", "--message-format", "json-render-diagnostics", *options]
    build = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if build.returncode:
        sys.exit(build.returncode)
    messages = [json.loads(line) for line in build.stdout.splitlines()]
    built = [
        (message["target"]["name"], Path(message["manifest_path"]).parent, message["executable"])
        for message in messages
        if message["reason"] == "compiler-artifact" and message["profile"]["test"] and message["executable"]
    ]
    return sorted(built, key=lambda program: (LONGEST.index(program[0]) if program[0] in LONGEST else len(LONGEST)))


def main(arguments: list[str]) -> int:
    end = arguments.index("--") if "--" in arguments else len(arguments)
    # The time of each test is an unstable option of the test harness.
    options = ["-Z", "unstable-options", "--report-time", *arguments[end + 1 :]]
    environment = {**os.environ, "RUSTC_BOOTSTRAP": "1"}

    def run(program: tuple[str, Path, str]) -> tuple[str, subprocess.CompletedProcess[str]]:
        _, folder, executable = program
        name = f"{folder.name}: {Path(executable).name}"
        return name, subprocess.run(
            [executable, *options], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
        )

    failed = []
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for done in concurrent.futures.as_completed([pool.submit(run, program) for program in programs(arguments[:end])]):
            name, process = done.result()
            print(f"--- {name}\n{process.stdout}", flush=True)
            if process.returncode:
                failed.append(f"{name}: exit code {process.returncode}")
    print("\n".join(failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
