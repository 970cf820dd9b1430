#!/usr/bin/env bash
# Collects the files of a package of the command, apart from the program, in target/package: manual pages,
# completions, licences. The Debian package and the archives of a release take them from there.
#
#   scripts/package.sh PROGRAM
set -euo pipefail
program=$(realpath "${1:?PROGRAM is missing}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=${CARGO_TARGET_DIR:-target}/package
rm -rf "$target" && mkdir -p "$target/completions"
"$program" man "$target/man"
"$program" completions bash >"$target/completions/ebbtide.bash"
"$program" completions zsh >"$target/completions/_ebbtide"
"$program" completions fish >"$target/completions/ebbtide.fish"
cp README.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT "$target/"
python3 scripts/third_party.py "$target"
find "$target" -type f | sort
