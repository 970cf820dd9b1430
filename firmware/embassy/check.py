#!/usr/bin/env python3
"""Builds the driver on embassy-net for a board, and runs it on a TAP device against Ebbtide's server, which loses 30 % each way.

    firmware/embassy/check.py EBBTIDE       the command

Needs no root where user namespaces are allowed, and Rust's target thumbv6m-none-eabi.
"""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from device import Host, ebbtide_server  # noqa: E402
from relay import UdpRelay  # noqa: E402

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", HERE.parent.parent / "target")) / "firmware" / "embassy"
INSIDE = "EBBTIDE_IN_NAMESPACE"
ADDRESS = "10.97.0.1"
SEED = 1800


def build(board: str, *options: str) -> None:
    command = ["cargo", "build", "--quiet", "--locked", "--target-dir", str(TARGET), "--features", board, "--bin", board, *options]
    subprocess.run(command, cwd=HERE, check=True)


def run(ebbtide: Path) -> int:
    """In a network namespace of its own."""
    for line in ("link set lo up", "tuntap add dev tap97 mode tap", f"addr add {ADDRESS}/24 dev tap97", "link set tap97 up"):
        subprocess.run(["ip", *line.split()], check=True)
    host = Host(ebbtide, SEED, 0.3)
    with ebbtide_server(host) as port:
        relay = UdpRelay(("127.0.0.1", port), host.fate(), SEED, ADDRESS)
        try:
            code = subprocess.run([TARGET / "debug" / "tap", str(relay.port)], timeout=240).returncode
        finally:
            lost = relay.close().lost
    print(f"Embassy on TAP: {lost} datagrams lost")
    return code


def main() -> int:
    ebbtide = Path(sys.argv[1]).resolve()
    if INSIDE in os.environ:
        return run(ebbtide)
    build("w5500-evb-pico", "--release", "--target", "thumbv6m-none-eabi")
    build("tap")
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    command = ["unshare", *user, "--net", sys.executable, __file__, str(ebbtide)]
    return subprocess.run(command, env=os.environ | {INSIDE: "1"}).returncode


if __name__ == "__main__":
    sys.exit(main())
