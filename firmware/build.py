"""Builds the programs for all boards."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT.parent / "target")) / "firmware"
# Where rustup does not have a target's standard library, a cargo that builds it.
CARGO = os.environ.get("BARE_CARGO", "cargo").split()
FIXED = ("device-message", "device-blocks", "device-observe", "device-server")


@dataclass(frozen=True)
class Board:
    """A board of QEMU, and how to build for it."""

    name: str
    target: str
    # Of a change, and the others.
    programs: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    features: str = "endpoint"
    ethernet: bool = False

    def emulator(self) -> list[str]:
        """QEMU's command line, except for the network and the image."""
        return {
            "lm3s6965": ["qemu-system-arm", "-M", "lm3s6965evb"],
            "microbit": ["qemu-system-arm", "-M", "microbit"],
            "mps2-an386": ["qemu-system-arm", "-M", "mps2-an386"],
            "virt": ["qemu-system-riscv32", "-M", "virt", "-bios", "none"],
        }[self.name]

    @property
    def key(self) -> str:
        return f"{self.target} {'ethernet' if self.ethernet else 'serial'}"


BOARDS = (
    Board("lm3s6965", "thumbv7m-none-eabi", ("baseline", "control", *FIXED, "device-secure", "instants", "observe", "server", "protected"), ("message", "blocks", "secure"), "endpoint,dtls,oscore,simulated"),
    Board("lm3s6965", "thumbv7m-none-eabi", ("server",), ("observe", "secure"), "endpoint,dtls", ethernet=True),
    # 16 kB of RAM.
    Board("microbit", "thumbv6m-none-eabi", ("message",), ("device-observe",), "endpoint,portable-atomic"),
    Board("microbit", "thumbv6m-none-eabi", (), ("secure",), "endpoint,dtls,portable-atomic"),
    Board("mps2-an386", "thumbv7em-none-eabi", (), ("message",)),
    Board("virt", "riscv32imc-unknown-none-elf", ("observe",), ("server", "device-observe", "device-server"), "endpoint,portable-atomic"),
    Board("virt", "riscv32imac-unknown-none-elf", (), ("observe",)),
)


@dataclass(frozen=True)
class Image:
    """A program for a board."""

    board: Board
    path: Path


Images = dict[tuple[str, str], Image]


def build(full: bool) -> Images:
    """The images by board and program: those of a change, or all."""
    images: Images = {}
    for board in BOARDS:
        programs = board.programs + (board.more if full else ())
        if not programs:
            continue
        features = f"{board.name},{board.features}" + (",ethernet" if board.ethernet else "")
        # Images of one target and different features have the same names.
        directory = TARGET / ("ethernet" if board.ethernet else "serial")
        command = [*CARGO, "build", "--quiet", "--locked", "--release", "--target", board.target]
        command += ["--target-dir", str(directory), "--features", features]
        for program in programs:
            command += ["--bin", program]
            images[board.key, program] = Image(board, directory / board.target / "release" / program)
        subprocess.run(command, cwd=ROOT, check=True)
    return images
