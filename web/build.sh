#!/usr/bin/env bash
# Builds the page into target/web: static files that any web server can serve, and `ebbtide play` does. It needs node
# and `rustup target add wasm32-unknown-unknown`.
#
#   bash web/build.sh [DIR]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
target=$(mkdir -p "${CARGO_TARGET_DIR:-../target}" && cd "${CARGO_TARGET_DIR:-../target}" && pwd)
site=${1:-$target/web}
CARGO_TARGET_DIR=$target cargo build ${CI:+--locked} --release --target wasm32-unknown-unknown
mkdir -p "$site"
cp page/* "$site/"
cp "$target/wasm32-unknown-unknown/release/ebbtide_web.wasm" "$site/ebbtide.wasm"
# Without a name and a time: the same source gives the same bytes.
node pack.mjs "$site"
