#!/usr/bin/env bash
# Builds the example for the board, and runs it on this host over a TAP device that loses 30 % of the datagrams each way.
#
#   examples/embassy/check.sh TARGET_DIR EBBTIDE      needs nft, ip, user namespaces, and Rust's target thumbv6m-none-eabi
set -euo pipefail
target=$(realpath "$1")/embassy ebbtide=$(realpath "$2")
cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck disable=SC2086 # words
${BARE_CARGO:-cargo} build --quiet --locked --release --target thumbv6m-none-eabi --target-dir "$target" --features board --bin board
cargo build --quiet --locked --target-dir "$target" --features host --bin host
size "$target/thumbv6m-none-eabi/release/board" | tail -1
unshare --user --map-root-user --net bash -euo pipefail -s "$target/debug/host" "$ebbtide" <<'INSIDE'
ip tuntap add dev tap0 mode tap
ip address add 10.84.0.1/24 dev tap0
ip link set tap0 up
nft add table inet lossy
for way in input output; do
    nft "add chain inet lossy $way { type filter hook $way priority 0; }"
    nft add rule inet lossy "$way" meta l4proto udp numgen random mod 10 '<' 3 drop
done
coproc server { exec "$2" serve --bind 10.84.0.1:5683; }
trap 'kill $server_PID' EXIT
read -r _ <&"${server[0]}"
timeout 300 "$1" tap0 10.84.0.1:5683 10
INSIDE
