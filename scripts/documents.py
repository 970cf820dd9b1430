#!/usr/bin/env python3
"""Runs the commands that documents show, as a reader pastes them, and compares what they print with what is shown.

    scripts/documents.py PROGRAM            every page; PROGRAM is `ebbtide` as built
    scripts/documents.py PROGRAM PAGE...    these pages

Commands are the indented lines that begin with a program, and blocks marked `sh` or `console`. A page is one reader: a folder of its
own with the scenarios and scripts of a clone, and where the system allows it a network of its own, in which the ports of the documents are free. A block is
pasted at a time, and one that serves runs in a terminal of its own until the next one serves. A block marked `console` shows each
command's output, one marked `text` that of the block before: `[..]` stands for anything within a line, `...` for any lines.
"""

import concurrent.futures
import difflib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 60  # seconds for one block
# Where interop/build.sh puts it.
AIOCOAP = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "interop/aiocoap/bin"
# Without studies, whose commands take hours, and without pages that a program writes and a test compares.
PAGES = ["README.md", "CONTRIBUTING.md", "docs/**/*.md", "interop/README.md", "examples/*/README.md", "python/README.md"]
PROGRAMS = (
    "aiocoap-client", "bash", "cargo", "coap-client-notls", "coap-client-openssl", "cp", "curl", "data=", "ebbtide", "export", "interop/", "iptables", "openssl", "PATH=",
    "pip", "printf", "rustup", "sysctl", "tcpdump", "tshark", "./ci.sh",
)
SERVES = "ebbtide (serve|proxy|emulate .*--relay)"
# What the emulator says where a machine is too busy for real time, as one that runs tests may be.
TOO_BUSY = "ebbtide: INVALID: more than 1 % of the packets were over 1 ms late"
# What does not run here, by the beginning of a line or a part of it, and why.
NOT_HERE = {
    "./ci.sh ": "runs this script",
    "bash ci.sh": "runs this script",
    "cargo ": "builds; other steps do",
    "cargo +nightly": "fuzzes; another step does",
    "pip install": "step python installs the package",
    "interop/": "builds other implementations; step peers does, and matrix with --full",
    "studies/scripts": "minutes in real time",
    "--dtls13": "not in the published program; tests/it/dtls13.rs does it",
    "keylog_file:FILE": "the file stands for the reader's",
    "tcpdump": "the reader's network",
    "sysctl": "the reader's machine",
    "iptables": "the reader's machine",
    "rustup": "changes the reader's toolchain",
    "web/build.sh": "builds a page, with another target of the toolchain",
    "ebbtide play": "serves the page that was not built",
    "curl -N": "ends with Ctrl-C",
    "/etc/ebbtide": "the package installs the file",
    "systemctl": "the reader's machine",
    "qemu-system-arm": "the reader's device; a test attaches one",
    "coap://192.0.2.7": "the address stands for the reader's server",
}
if not (AIOCOAP / "aiocoap-client").exists():
    NOT_HERE["aiocoap-client"] = "interop/build.sh aiocoap brings it"
# What a page takes as there.
HAS = {
    "docs/fit.md": "ebbtide replay nb-iot --set clients=40 --set exchanges=10 --set buffer=1400 --cc default --pcap mine.pcap",
    "docs/proxy.md": "ebbtide serve --bind 127.0.0.1:5683",
    "docs/scenarios.md": "cp scenarios/nb-iot.toml my-network.toml",
}
# Commands that take minutes are cut down.
FEWER = {
    "--networks 200": "--networks 2",
    "--until meters": "--until meters --reps 1",
    "reproduce socne14 wimob17": "reproduce socne14 --reps 1",
    "lln-grid --set n=6 --cc default,cocoa-plus": "lln-grid --set n=6 --reps 1 --cc default,cocoa-plus",
}


def is_command(line: str) -> bool:
    return line.startswith(PROGRAMS)


def blocks(text: str) -> list[tuple[str, int, str]]:
    """The kind (`sh`, `console`, `text`, `toml`), line and contents of each block that matters."""
    found: list[tuple[str, int, list[str]]] = []
    fence = None
    for number, line in enumerate(text.splitlines(), 1):
        mark = re.match(r"```(\w*)", line)
        if mark:
            fence = None if fence is not None else mark[1]
            found.append((fence or "", number, []))
        elif fence is not None:
            found[-1][2].append(line)
        elif line.startswith("    ") and (is_command(line[4:]) or (found and found[-1][:1] == ("sh",) and found[-1][2])):
            if not found or found[-1][0] != "sh":
                found.append(("sh", number, []))
            found[-1][2].append(line[4:])
        else:
            found.append(("", number, []))
    return [(kind, number, "\n".join(lines) + "\n") for kind, number, lines in found if kind and lines]


def is_like(shown: str, line: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, shown.split("[..]"))), line) is not None


def are_like(shown: list[str], lines: list[str]) -> bool:
    if not shown or shown[0] == "...":
        return not lines if not shown else any(are_like(shown[1:], lines[skip:]) for skip in range(len(lines) + 1))
    return bool(lines) and is_like(shown[0], lines[0]) and are_like(shown[1:], lines[1:])


class Wrong(Exception):
    """A document shows what is not so."""


class Reader:
    """Who follows a page, and what was not run on it."""

    def __init__(self, folder: str, program: Path) -> None:
        self.folder = Path(folder)
        self.environment = {**os.environ, "PATH": f"{program.parent}:{AIOCOAP}:{os.environ['PATH']}"}
        self.servers: dict[str, subprocess.Popen[str]] = {}
        self.skipped: set[str] = set()
        self.failed = False
        for name in ("scenarios", "scripts"):
            (self.folder / name).symlink_to(ROOT / name)

    def start(self, script: str, output: int) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["bash", "-e", "-c", script], cwd=self.folder, env=self.environment, text=True, stdin=subprocess.DEVNULL,
            stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
        )

    def run(self, script: str) -> str:
        process = self.start(script, subprocess.PIPE)
        try:
            printed, _ = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise Wrong(f"no end within {LIMIT} s") from None
        self.failed = process.returncode != 0
        return printed

    def serve(self, command: str) -> str:
        """What a command that serves prints until it does. It takes the place of one of its kind."""
        kind = " ".join(command.split()[:2])
        self.leave(kind)
        with tempfile.TemporaryFile("w+") as log:
            server = self.servers[kind] = self.start(f"exec {command}", log.fileno())
            for _ in range(100 * LIMIT):
                printed = os.pread(log.fileno(), 1 << 16, 0).decode()
                # It prints its addresses when all of them are bound, those for HTTP last.
                if re.search("^(metrics|gateway) at " if "--metrics" in command or "--http" in command else "^(serving|relaying|proxy) ", printed, re.M):
                    return printed
                if server.poll() is not None:
                    break
                time.sleep(0.01)
        self.failed = True
        return printed

    def leave(self, kind: str) -> None:
        """Ctrl-C in the terminal of the server of this kind."""
        if server := self.servers.pop(kind, None):
            server.send_signal(signal.SIGINT)
            server.wait(LIMIT)

    def here(self, script: str) -> str:
        """The script without what is not run here."""
        kept = []
        for line in script.replace("\\\n", " ").splitlines():
            reasons = [part for part in NOT_HERE if part in line]
            self.skipped.update(reasons)
            if not reasons:
                kept.append(line)
        script = "\n".join(kept)
        for whole, fewer in FEWER.items():
            script = script.replace(whole, fewer)
        return script

    def paste(self, script: str, serves: bool) -> str | None:
        """What a block prints, or nothing if nothing of it is run."""
        self.failed = False
        script = self.here(script.replace("cargo run --release -- ", "ebbtide "))
        if not script.strip():
            return None
        if serves:
            if "\n" in script.strip():
                raise Wrong("nothing that is pasted after a command that serves runs")
            return self.serve(script)
        if "serve &" in script:
            raise Wrong("it may not listen yet when the next line runs")
        return self.run(script)

    def edit(self, fragment: str) -> None:
        """Puts tables and first keys of a fragment into the copy of a scenario that the page made."""
        (path,) = self.folder.glob("*.toml")
        text = path.read_text(encoding="utf-8")
        keys, *tables = re.split(r"^(?=\[)", fragment, flags=re.M)
        for line in keys.splitlines():
            text = re.sub(rf"^{line.split(' = ')[0]} = .*$", line, text, count=1, flags=re.M) if line else text
        for table in tables:
            name = re.escape(table.splitlines()[0])
            text = re.sub(rf"^{name}.*?(?=^\[|\Z)", lambda _, table=table: table + "\n", text, flags=re.M | re.S)
        path.write_text(text, encoding="utf-8")


def compare(shown: str, printed: str) -> None:
    expected, lines = shown.splitlines(), printed.splitlines()
    if not are_like(expected, lines):
        raise Wrong("\n".join(difflib.unified_diff(expected, lines, "shown", "printed", lineterm="")))


def follow(page: str, program: Path) -> tuple[list[str], set[str]]:
    """What is wrong with a page, and the reasons for which lines of it were not run."""
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        reader, printed, copied = Reader(folder, program), None, False
        if page in HAS:
            reader.paste(HAS[page], re.match(SERVES, HAS[page]) is not None)
        for kind, line, text in blocks((ROOT / page).read_text(encoding="utf-8")):
            try:
                if kind == "console":
                    for example in re.split(r"^\$ ", text, flags=re.M)[1:]:
                        command, _, shown = example.partition("\n")
                        compare(shown, reader.paste(command, shown.startswith("serving ")) or "")
                elif kind == "sh":
                    printed = reader.paste(text, re.match(SERVES, text) is not None) or printed
                    copied |= text.startswith("cp scenarios/")
                    if reader.failed and TOO_BUSY not in (printed or ""):
                        raise Wrong(printed or "it fails and prints nothing")
                elif kind == "toml" and copied:
                    reader.edit(text)
                elif kind == "text" and printed is not None:
                    compare(text, printed)
            except Wrong as reason:
                wrong.append(f"{page}:{line}: {text.splitlines()[0]}\n{reason}")
        for kind in list(reader.servers):
            reader.leave(kind)
    return wrong, reader.skipped


def network_of_its_own() -> list[str]:
    """What a command begins with to have one, or nothing where the system does not allow it."""
    begin = ["unshare", "-Urn", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    return begin if subprocess.run([*begin, "true"], capture_output=True, check=False).returncode == 0 else []


def main(arguments: list[str]) -> int:
    program, *pages = arguments
    if len(pages) == 1:
        wrong, skipped = follow(pages[0], Path(program).resolve())
        print(json.dumps(sorted(skipped)), *wrong, sep="\n")
        return len(wrong)
    whole = not pages
    if whole:
        pages = sorted({path.relative_to(ROOT).as_posix() for pattern in PAGES for path in ROOT.glob(pattern)})
    network = network_of_its_own()

    def read(page: str) -> subprocess.CompletedProcess[str]:
        command = [*network, sys.executable, __file__, program, page]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    failed, used = 0, set()
    with concurrent.futures.ThreadPoolExecutor(2 * (os.cpu_count() or 1) if network else 1) as pool:
        for page, child in zip(pages, pool.map(read, pages), strict=True):
            reasons, _, wrong = child.stdout.partition("\n")
            used |= set(json.loads(reasons or "[]"))
            failed += child.returncode
            print(wrong + child.stderr, end="")
    for part in sorted(NOT_HERE.keys() - used) if whole else ():
        print(f"no document shows '{part}' any more: remove it from {Path(__file__).name}")
        failed += 1
    print(f"{len(pages)} pages, {failed} commands that do not do what is shown")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
