#!/usr/bin/env python3
"""Prints the Homebrew formula of a release, whose programs it names with their checksums.

    packaging/homebrew/formula.py VERSION SHA256SUMS >ebbtide.rb

The release workflow attaches it to the release: `brew install --formula ./ebbtide.rb`.
"""

import sys
from pathlib import Path

TARGETS = {
    ("macos", "arm"): "aarch64-apple-darwin",
    ("linux", "arm"): "aarch64-unknown-linux-musl",
    ("linux", "intel"): "x86_64-unknown-linux-musl",
}
FORMULA = """\
class Ebbtide < Formula
  desc "CoAP client and server, and a testbed for congestion controls"
  homepage "https://github.com/ebbtide/ebbtide"
  version "{version}"
  license any_of: ["Apache-2.0", "MIT"]

{systems}

  def install
    bin.install "ebbtide"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/ebbtide.bash" => "ebbtide"
    zsh_completion.install "completions/_ebbtide"
    fish_completion.install "completions/ebbtide.fish"
  end

  test do
    assert_match "nb-iot", shell_output("#{{bin}}/ebbtide list scenarios")
  end
end
"""
PROCESSOR = """\
    on_{processor} do
      url "https://github.com/ebbtide/ebbtide/releases/download/v{version}/{file}"
      sha256 "{digest}"
    end"""


def main(version: str, sums: Path) -> int:
    digests = {name: digest for digest, name in (line.split() for line in sums.read_text().splitlines())}
    systems: dict[str, list[str]] = {}
    for (system, processor), target in TARGETS.items():
        file = f"ebbtide-{version}-{target}.tar.gz"
        if file not in digests:
            print(f"{sums}: {file} is missing", file=sys.stderr)
            return 1
        systems.setdefault(system, []).append(
            PROCESSOR.format(processor=processor, version=version, file=file, digest=digests[file])
        )
    blocks = ["\n".join([f"  on_{system} do", *processors, "  end"]) for system, processors in systems.items()]
    print(FORMULA.format(version=version, systems="\n\n".join(blocks)), end="")
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
