#!/usr/bin/env bash
# The library as a C program uses it: the example with both libraries, under sanitizers and valgrind, and the size for Cortex-M0.
#
#   crates/ebbtide-c/check.sh TARGET_DIR      needs cc, pkg-config, valgrind, and Rust's target thumbv6m-none-eabi
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
target=$(realpath "$1") out=$(realpath "$1")/ebbtide-c
MOST=6000 # bytes of code and constants on a Cortex-M0

mkdir -p "$out/lib/pkgconfig"
cargo build --quiet -p ebbtide-c --target-dir "$target"
cp "$target/debug/libebbtide.a" "$target/debug/libebbtide.so" "$out/lib"
sed "s|@prefix@|$out|; s|@libdir@|$out/lib|; s|@includedir@|$PWD/include|; s|@version@|0.1.0|" ebbtide.pc.in >"$out/lib/pkgconfig/ebbtide.pc"
export PKG_CONFIG_PATH=$out/lib/pkgconfig
flags=(-std=c99 -Wall -Wextra -Wpedantic -Werror -g examples/retransmit.c)

# shellcheck disable=SC2046 # flags are words
cc "${flags[@]}" $(pkg-config --cflags --libs ebbtide) -o "$out/shared"
LD_LIBRARY_PATH=$out/lib "$out/shared" | tail -1
# shellcheck disable=SC2046
cc "${flags[@]}" -fsanitize=address,undefined -fno-sanitize-recover $(pkg-config --cflags ebbtide) "$out/lib/libebbtide.a" -lpthread -ldl -lm -o "$out/sanitized"
"$out/sanitized" >/dev/null
# shellcheck disable=SC2046
cc "${flags[@]}" $(pkg-config --cflags ebbtide) "$out/lib/libebbtide.a" -lpthread -ldl -lm -o "$out/static"
valgrind --quiet --error-exitcode=1 --leak-check=full "$out/static" >/dev/null

small=(--config 'profile.release.opt-level="z"' --config 'profile.release.lto="fat"' --config 'profile.release.panic="abort"'
    --config profile.release.codegen-units=1 --config profile.release.debug=false)
cargo rustc --quiet -p ebbtide-c --release --target thumbv6m-none-eabi --target-dir "$target/firmware/c" --crate-type staticlib "${small[@]}"
functions=()
for name in init admit on_transmit on_expire on_feedback on_close; do functions+=(-u "ebbtide_$name"); done
"$(rustc --print sysroot)/lib/rustlib/$(rustc -vV | sed -n 's/^host: //p')/bin/rust-lld" -flavor gnu --gc-sections -e ebbtide_init "${functions[@]}" \
    -o "$out/cortex-m0.elf" "$target/firmware/c/thumbv6m-none-eabi/release/libebbtide.a"
bytes=$(size -A "$out/cortex-m0.elf" | awk '/^\.(text|rodata|data) / { bytes += $2 } END { print bytes }')
echo "$bytes bytes of code for Cortex-M0, at most $MOST"
[ "$bytes" -le "$MOST" ]
