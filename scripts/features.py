#!/usr/bin/env python3
"""The dependencies of the library: how many a minimal client has, and which Rust they ask for."""

import json
import subprocess
import sys

MAX_CRATES = 45  # of a client for UDP
FORBIDDEN = ("rustls", "tokio-rustls", "tokio-tungstenite", "tungstenite", "ebbtide-dtls", "serde")


def cargo(*arguments: str) -> str:
    return subprocess.run(["cargo", *arguments], check=True, capture_output=True, text=True).stdout


def version(text: str | None) -> tuple[int, ...]:
    numbers = [int(part) for part in (text or "1").split(".")]
    return (*numbers, 0, 0)[:3]


def tree(package: str, *arguments: str) -> set[tuple[str, str]]:
    lines = cargo("tree", "-p", package, "-e", "normal,build", "--prefix", "none", *arguments)
    return {(name, number.lstrip("v")) for name, number, *_ in map(str.split, lines.splitlines())}


def main() -> int:
    wrong = []
    minimal = tree("ebbtide")
    if len(minimal) >= MAX_CRATES:
        wrong.append(f"a minimal client has {len(minimal)} crates, {MAX_CRATES} are too many")
    for name, number in sorted(minimal):
        if name in FORBIDDEN:
            wrong.append(f"a minimal client must do without {name} {number}")

    packages = json.loads(cargo("metadata", "--format-version", "1"))["packages"]
    asked = {(package["name"], package["version"]): package["rust_version"] for package in packages}
    stated = {package["name"]: package["rust_version"] for package in packages}
    for package in ("ebbtide-core", "ebbtide-dtls", "ebbtide-dtls13", "ebbtide", "ebbtide-sim", "ebbtide-cli"):
        for one in sorted(tree(package, "--all-features")):
            if version(asked.get(one)) > version(stated[package]):
                name, number = one
                wrong.append(f"{package} states Rust {stated[package]}, {name} {number} asks for {asked[one]}")

    for line in wrong:
        print(line, file=sys.stderr)
    print(f"a minimal client: {len(minimal)} crates; Rust {stated['ebbtide-core']} for the core, "
          f"{stated['ebbtide']} for the library, {stated['ebbtide-cli']} for the command")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
