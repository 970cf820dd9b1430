#!/usr/bin/env python3
"""How many small faults the tests notice: scripts/mutants.py [--number 300] [--seed 1] [--area cc]

A mutant is the program with one change: a function that does nothing or returns a constant, a condition that is negated, a comparison
or a connective that is another one. The script draws mutants at random from all that the code of five areas has, each area with its
part, compiles them into one copy of the program, where the variable MUTANT makes one of them active, and runs the tests for each. An
area's own tests run first; what survives them meets those of the library that is built on it.
"""

import argparse
import concurrent.futures
import json
import math
import os
import random
import re
import resource
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

AREAS = {
    "cc": "crates/ebbtide-core/src/cc",
    "exchange": "crates/ebbtide-core/src/exchange",
    "session": "crates/ebbtide-core/src/session",
    "dtls": "crates/ebbtide-dtls/src",
    "links": "testbed/ebbtide-sim/src/net",
}
OF_LIBRARY = [("ebbtide", "ebbtide"), ("ebbtide", "it")]
# Package and target of the tests, in order.
TESTS = dict.fromkeys(("cc", "exchange", "session"), [("ebbtide-core", "ebbtide_core"), ("ebbtide-core", "it"), *OF_LIBRARY]) | {
    "dtls": [("ebbtide-dtls", "ebbtide_dtls"), ("ebbtide-dtls", "it"), *OF_LIBRARY],
    "links": [("ebbtide-sim", "ebbtide_sim"), ("ebbtide-sim", "it")],
}
PACKAGES = ["ebbtide-core", "ebbtide-dtls", "ebbtide-sim", "ebbtide"]
ROOTS = ["crates/ebbtide-core/src/lib.rs", "crates/ebbtide-dtls/src/lib.rs", "testbed/ebbtide-sim/src/lib.rs"]
SWITCH = """
/// Whether this mutant is the active one.
#[doc(hidden)]
pub fn mutant(number: u32) -> bool {
    static ACTIVE: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    *ACTIVE.get_or_init(|| std::env::var("MUTANT").ok().and_then(|text| text.parse().ok()).unwrap_or(0)) == number
}
"""
# A mutant that never ends counts as caught: once its tests have taken so many times as much of a processor as without it, and these
# seconds, or have waited so many seconds.
LONGER = 3
SPARE_SECONDS = 20
LONGEST_WAIT = 600
MOST_MEMORY = 16 << 30
LEAST_CAUGHT = 0.9

NUMBERS = dict.fromkeys(("u8", "u16", "u32", "u64", "usize"), ["0", "1"])
RESULTS = NUMBERS | {"()": ["()"], "bool": ["true", "false"], "Option": ["None"]}
FUNCTION = re.compile(
    r"^( *)(?:pub(?:\([^)]*\))? )?fn (\w+)(?:<[^\n{]*>)?\((?:[^{}]|\n)*?\)(?: -> ([^{\n]+))?(?:\n\s*where[^{]*)? \{\n", re.MULTILINE
)
CONDITION = re.compile(r"(?<!\w)(if|while) (?!let\b)([^{}\n;]+?) \{\n")
CONSTANT = re.compile(r"^( *)(?:pub(?:\([^)]*\))? )?const (fn|[A-Z_]+)\b", re.MULTILINE)
OPERATORS = ((" < ", " <= "), (" <= ", " < "), (" > ", " >= "), (" >= ", " > "), (" && ", " || "), (" || ", " && "))


@dataclass(frozen=True)
class Mutant:
    """A change of the text from `start` to `end` of a file; NUMBER in `text` becomes the mutant's."""

    area: str
    path: str
    line: int
    what: str
    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Program:
    folder: Path
    path: str
    seconds: int = LONGEST_WAIT  # of a processor


def constant_parts(text: str) -> list[tuple[int, int]]:
    """What the compiler evaluates, where no switch can be asked."""
    parts = []
    for found in CONSTANT.finditer(text):
        end = text.find(f"\n{found[1]}}}" if found[2] == "fn" else ";\n", found.end())
        parts.append((found.start(), end if end >= 0 else len(text)))
    return parts


def mutants_of(area: str, path: str, text: str) -> Iterator[Mutant]:
    tests = text.find("#[cfg(test)]\nmod ")
    text = text if tests < 0 else text[:tests]
    constants = constant_parts(text)

    def mutant(found: re.Match[str], what: str, span: tuple[int, int], change: str) -> Mutant:
        return Mutant(area, path, text.count("\n", 0, found.start()) + 1, what, *span, change)

    for found in FUNCTION.finditer(text):
        result = (found[3] or "()").strip()
        key = "Option" if result.startswith("Option<") else result
        if key not in RESULTS or found[2] in ("fmt", "drop") or any(start <= found.start() <= end for start, end in constants):
            continue
        for value in RESULTS[key]:
            change = f"{found[1]}    if crate::mutant(NUMBER) {{ return {value}; }}\n"
            yield mutant(found, f"fn {found[2]} -> {value}", (found.end(), found.end()), change)
    for found in CONDITION.finditer(text):
        before = text[text.rfind("\n", 0, found.start()) + 1 : found.start()]
        condition = found[2]
        is_plain = "=>" not in condition and " let " not in condition and "//" not in before
        if not is_plain or any(start <= found.start() <= end for start, end in constants):
            continue
        yield mutant(found, f"{found[1]} !({condition})", found.span(2), f"(crate::mutant(NUMBER) != ({condition}))")
        for old, new in OPERATORS:
            is_mixed = old in (" && ", " || ") and " && " in condition and " || " in condition
            if condition.count(old) == 1 and not is_mixed and "|" not in condition.replace("||", ""):
                changed = condition.replace(old, new)
                change = f"(if crate::mutant(NUMBER) {{ {changed} }} else {{ {condition} }})"
                yield mutant(found, f"{found[1]} {changed}", found.span(2), change)


def draw(tree: Path, number: int, seed: int, areas: list[str]) -> list[Mutant]:
    """Mutants of the areas, each with its part; at most one at each place."""
    chance = random.Random(seed)
    of_area = {}
    for area in areas:
        files = [path for path in sorted((tree / AREAS[area]).rglob("*.rs")) if path.name != "tests.rs" and "tests" not in path.parts]
        of_area[area] = [mutant for path in files for mutant in mutants_of(area, str(path.relative_to(tree)), path.read_text())]
    total = sum(map(len, of_area.values()))
    drawn = []
    for area, mutants in of_area.items():
        chance.shuffle(mutants)
        at_places = {(mutant.path, mutant.start): mutant for mutant in reversed(mutants)}
        drawn += [mutant for mutant in mutants if at_places[mutant.path, mutant.start] is mutant][: round(number * len(mutants) / total)]
    print(f"{len(drawn)} of {total} mutants: " + ", ".join(f"{area} {len(mutants)}" for area, mutants in of_area.items()), flush=True)
    return drawn


def insert(tree: Path, mutants: dict[int, Mutant]) -> None:
    """Writes the mutants into a fresh copy of what git has."""
    # With new times, from which cargo sees that a file of an earlier draw has changed.
    archive = subprocess.run(["git", "archive", "HEAD"], stdout=subprocess.PIPE, check=True).stdout
    subprocess.run(["tar", "xm", "-C", str(tree)], input=archive, check=True)
    for path in {mutant.path for mutant in mutants.values()}:
        text = (tree / path).read_text()
        here = sorted(((mutant.start, number, mutant) for number, mutant in mutants.items() if mutant.path == path), reverse=True)
        for _, number, mutant in here:
            text = text[: mutant.start] + mutant.text.replace("NUMBER", str(number)) + text[mutant.end :]
        (tree / path).write_text(text)
    for path in ROOTS:
        text = (tree / path).read_text().replace("#![no_std]", "")
        (tree / path).write_text(text + SWITCH)


def build(tree: Path, mutants: dict[int, Mutant]) -> dict[tuple[str, str], Program]:
    """The programs of each package's tests. A mutant that does not compile is left out, in place."""
    command = ["cargo", "test", "--no-run", "--message-format", "json", "--lib", "--test", "it", *(f"-p={name}" for name in PACKAGES)]
    optimised = [f"--config=profile.dev.package.{name}.opt-level=1" for name in PACKAGES[:3]]
    environment = os.environ | {"RUSTFLAGS": "--cap-lints=warn", "CARGO_PROFILE_DEV_DEBUG": "0", "CARGO_TARGET_DIR": str(tree.parent / "target")}
    while True:
        insert(tree, mutants)
        ran = subprocess.run([*command, *optimised], cwd=tree, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        messages = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
        if ran.returncode == 0:
            built = [message for message in messages if message.get("executable") and message["profile"]["test"]]
            folders = [Path(message["manifest_path"]).parent for message in built]
            return {
                (folder.name, message["target"]["name"]): Program(folder, message["executable"])
                for folder, message in zip(folders, built, strict=True)
            }
        errors = [message["message"] for message in messages if message.get("message", {}).get("level") == "error"]
        lines = [line["text"] for error in errors for span in error["spans"] for line in span["text"]]
        wrong = {int(number) for line in lines for number in re.findall(r"crate::mutant\((\d+)\)", line)}
        if not wrong:
            sys.exit("the program does not compile:\n" + "\n".join(error["rendered"] for error in errors[:5]))
        for number in wrong:
            print(f"does not compile: {mutants[number].path}:{mutants[number].line}: {mutants[number].what}", flush=True)
            del mutants[number]


def notices(program: Program, number: int) -> bool:
    """Whether a test fails, or one does not end, with this mutant."""
    environment = os.environ | {"MUTANT": str(number), "RUST_BACKTRACE": "0", "PROPTEST_RNG_SEED": "7252", "PROPTEST_MAX_SHRINK_ITERS": "1"}
    bounded = ["prlimit", f"--as={MOST_MEMORY}", f"--cpu={program.seconds}", program.path, "--test-threads=4"]
    run = subprocess.Popen(bounded, cwd=program.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    timer = threading.Timer(LONGEST_WAIT, run.kill)
    timer.start()
    with run, run.stdout as lines:
        failed = any(line.rstrip().endswith("FAILED") for line in lines)
        if failed:
            run.kill()
    timer.cancel()
    return failed or run.returncode != 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--number", type=int, default=300, help="how many mutants are drawn")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--area", action="append", choices=AREAS, help="only this one; may be repeated")
    parser.add_argument("--folder", type=Path, default=Path(os.environ.get("CARGO_TARGET_DIR", "target")) / "mutants")
    options = parser.parse_args()
    tree = options.folder.absolute() / "tree"
    tree.mkdir(parents=True, exist_ok=True)
    insert(tree, {})
    mutants = dict(enumerate(draw(tree, options.number, options.seed, options.area or list(AREAS)), 1))
    programs = build(tree, mutants)
    for name, program in programs.items():
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        if notices(program, 0):
            sys.exit(f"tests of {name} fail without any mutant")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        programs[name] = replace(program, seconds=SPARE_SECONDS + math.ceil(LONGER * took))

    def is_caught(number: int) -> bool:
        return any(notices(programs[tests], number) for tests in TESTS[mutants[number].area])

    caught = dict.fromkeys(AREAS, 0)
    survivors = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for mutant, was_caught in zip(mutants.values(), pool.map(is_caught, mutants), strict=True):
            if was_caught:
                caught[mutant.area] += 1
            else:
                survivors.append(mutant)
                print(f"survives: {mutant.path}:{mutant.line}: {mutant.what}", flush=True)
    for area, number in caught.items():
        total = sum(mutant.area == area for mutant in mutants.values())
        if total:
            print(f"{area}: {number} of {total} caught, {number / total:.1%}")
    share = sum(caught.values()) / len(mutants)
    print(f"{share:.1%} of {len(mutants)} caught")
    if share < LEAST_CAUGHT:
        sys.exit(f"fewer than {LEAST_CAUGHT:.0%}")


if __name__ == "__main__":
    main()
