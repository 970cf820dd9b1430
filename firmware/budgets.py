"""The budgets: bytes of flash, stack and heap of each program, in a table that the documents include."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from build import ROOT, Images

PAGE = ROOT.parent / "docs/devices.md"
MARKS = "<!-- budgets: written by firmware/check.py --write -->\n\n", "\n<!-- budgets end -->"
BOARD = "thumbv7m-none-eabi serial"
# What a compiler of another version may add, or the order of datagrams, in per cent and in bytes.
TOLERANCE, SLACK = 5, 512
PROGRAMS = {
    "baseline": "no CoAP: start-up, serial line, what reports figures",
    "control": "codec and one congestion control, no allocator",
    "device-message": "fixed tables: client on the message layer",
    "device-blocks": "fixed tables: and bodies in blocks (3000 bytes up and down)",
    "device-observe": "fixed tables: and observations",
    "device-server": "fixed tables: server with blocks and 4 observers, of which 2048 bytes of stack are a body",
    "device-secure": "fixed tables: client on the message layer over DTLS-PSK, whose handshake has an allocator",
    "message": "client on the message layer",
    "blocks": "and bodies in blocks (3000 bytes up and down)",
    "observe": "and observations",
    "server": "server with blocks and observers (1792 bytes up and down)",
    "secure": "client on the message layer over DTLS-PSK",
    "protected": "client on the message layer, protected by OSCORE",
}
HEAD = """| program | what | flash | static | heap, peak | stack, peak |
|---|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Size:
    """Bytes of one program."""

    flash: int
    static: int
    heap: int
    stack: int


def sections(image: Path) -> dict[str, int]:
    """The sizes of an image's sections."""
    listed = subprocess.run(["size", "-A", str(image)], check=True, capture_output=True, text=True).stdout
    return {name: int(size) for name, size in re.findall(r"^(\.\S+) +(\d+)", listed, re.M)}


def measure(images: Images, figures: dict[str, dict[str, int]]) -> dict[str, Size]:
    """The sizes of the programs on the serial line, whose runs had these figures."""
    measured = {}
    for program in PROGRAMS:
        if (BOARD, program) not in images:
            continue
        at = sections(images[BOARD, program].path)
        flash = sum(at.get(name, 0) for name in (".vector_table", ".text", ".rodata", ".data"))
        run = figures.get(program, {})
        # The heap's arena, whose size is the program's choice, is in .uninit.
        static = at.get(".data", 0) + at.get(".bss", 0)
        measured[program] = Size(flash, static, run.get("heap_peak", 0), run.get("stack_peak", 0))
    return measured


def write(measured: dict[str, Size]) -> None:
    rows = [
        f"| `{program}` | {PROGRAMS[program]} | {size.flash} | {size.static} | {size.heap} | {size.stack} |\n"
        for program, size in measured.items()
    ]
    before, rest = PAGE.read_text(encoding="utf-8").split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    PAGE.write_text(before + MARKS[0] + HEAD + "".join(rows) + MARKS[1] + after, encoding="utf-8")


def read() -> dict[str, Size]:
    rows = re.findall(r"^\| `([\w-]+)` \|.*\| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", PAGE.read_text(encoding="utf-8"), re.M)
    return {program: Size(*map(int, sizes)) for program, *sizes in rows}


def compare(measured: dict[str, Size]) -> int:
    """Prints what has grown beyond the table, and returns how much has. What shrank is to be written."""
    table, grown = read(), 0
    for program, size in measured.items():
        for what, number in vars(size).items():
            budget = vars(table[program])[what]
            allowed = budget + budget * TOLERANCE // 100 + SLACK
            if number > allowed:
                grown += 1
                print(f"{program}: {number} bytes of {what}, more than {budget}: firmware/check.py --write, if it must be")
            elif number + budget * 10 // 100 + 2 * SLACK < budget:
                print(f"{program}: {number} bytes of {what}, where the table has {budget}: firmware/check.py --write")
    return grown
