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
LONGEST = (("ebbtide-cli", "interop"), ("ebbtide", "it"), ("ebbtide-cli", "it"))  # begin first
MOSTLY_WAIT = {"interop": max(4, os.cpu_count() or 1)}  # how many tests run at once: most of their time is waiting
# Their tests talk over real sockets, some with other implementations, whose own timers a busy machine can let run out: one that
# fails is run once more, alone, and the end of the log names it. Tests in virtual time have no second try.
REAL_TIME = {("ebbtide-cli", "interop"), ("ebbtide-cli", "it"), ("ebbtide", "it"), ("ebbtide-proxy", "it")}


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
    return sorted(built, key=lambda program: LONGEST.index(name(program)) if name(program) in LONGEST else len(LONGEST))


def name(program: tuple[str, Path, str]) -> tuple[str, str]:
    """Package and target."""
    return program[1].name, program[0]


def failures(output: str) -> list[str]:
    """The tests that the last list of failures names."""
    listed = output.rpartition("\nfailures:\n")[2] if "\nfailures:\n" in output else ""
    return [line.strip() for line in listed.splitlines() if line.startswith("    ")]


def main(arguments: list[str]) -> int:
    end = arguments.index("--") if "--" in arguments else len(arguments)
    # The time of each test is an unstable option of the test harness.
    options = ["-Z", "unstable-options", "--report-time", *arguments[end + 1 :]]
    environment = {**os.environ, "RUSTC_BOOTSTRAP": "1"}

    def run(program: tuple[str, Path, str], *only: str) -> tuple[tuple[str, Path, str], subprocess.CompletedProcess[str]]:
        target, folder, executable = program
        at_once = [f"--test-threads={MOSTLY_WAIT[target]}"] if target in MOSTLY_WAIT and not only else []
        return program, subprocess.run(
            [executable, *options, *at_once, *only], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
        )

    failed, again = [], []
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for done in concurrent.futures.as_completed([pool.submit(run, program) for program in programs(arguments[:end])]):
            program, process = done.result()
            target, folder, executable = program
            heading = f"{folder.name}: {Path(executable).name}"
            print(f"--- {heading}\n{process.stdout}", flush=True)
            if not process.returncode:
                continue
            tests = failures(process.stdout)
            if tests and name(program) in REAL_TIME:
                again.append((heading, program, tests))
            else:
                failed.append(f"{heading}: exit code {process.returncode}")
    for heading, program, tests in again:
        _, process = run(program, "--exact", *tests)
        print(f"--- {heading}, the tests that failed, once more\n{process.stdout}", flush=True)
        if process.returncode:
            failed.append(f"{heading}: exit code {process.returncode}")
        else:
            print(f"UNSTEADY, passed when run alone: {', '.join(tests)}", flush=True)
    print("\n".join(failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
