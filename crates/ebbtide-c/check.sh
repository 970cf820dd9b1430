#!/usr/bin/env bash
# The library as a C program uses it: the examples with both libraries, under sanitizers and valgrind, and the sizes for Cortex-M0.
#
#   crates/ebbtide-c/check.sh TARGET_DIR      needs cc, pkg-config, valgrind, and Rust's target thumbv6m-none-eabi
#                                              or in BARE_CARGO a cargo that builds its standard library
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
target=$(realpath "$1") out=$(realpath "$1")/ebbtide-c
MOST=6000 # bytes of code and constants of the control on a Cortex-M0
MOST_ENDPOINT=40000

mkdir -p "$out/lib/pkgconfig"
cargo build --quiet -p ebbtide-c --target-dir "$target"
cp "$target/debug/libebbtide.a" "$target/debug/libebbtide.so" "$out/lib"
sed "s|@prefix@|$out|; s|@libdir@|$out/lib|; s|@includedir@|$PWD/include|; s|@version@|0.1.0|" ebbtide.pc.in >"$out/lib/pkgconfig/ebbtide.pc"
export PKG_CONFIG_PATH=$out/lib/pkgconfig

for example in retransmit endpoint; do
    flags=(-std=c99 -Wall -Wextra -Wpedantic -Werror -g "examples/$example.c")
    # shellcheck disable=SC2046 # flags are words
    cc "${flags[@]}" $(pkg-config --cflags --libs ebbtide) -o "$out/shared"
    LD_LIBRARY_PATH=$out/lib "$out/shared" | tail -1
    # shellcheck disable=SC2046
    cc "${flags[@]}" -fsanitize=address,undefined -fno-sanitize-recover $(pkg-config --cflags ebbtide) "$out/lib/libebbtide.a" -lpthread -ldl -lm -o "$out/sanitized"
    "$out/sanitized" >/dev/null
    # shellcheck disable=SC2046
    cc "${flags[@]}" $(pkg-config --cflags ebbtide) "$out/lib/libebbtide.a" -lpthread -ldl -lm -o "$out/static"
    valgrind --quiet --error-exitcode=1 --leak-check=full "$out/static" >/dev/null
done

small=(--config 'profile.release.opt-level="z"' --config 'profile.release.lto="fat"' --config 'profile.release.panic="abort"'
    --config profile.release.codegen-units=1 --config profile.release.debug=false)
# shellcheck disable=SC2086 # words
${BARE_CARGO:-cargo} rustc --quiet -p ebbtide-c --release --target thumbv6m-none-eabi --target-dir "$target/firmware/c" --crate-type staticlib "${small[@]}"
linker="$(rustc --print sysroot)/lib/rustlib/$(rustc -vV | sed -n 's/^host: //p')/bin/rust-lld"
check_size() { # NAME MOST FUNCTION...
    local name=$1 most=$2 functions=() bytes function
    for function in "${@:3}"; do functions+=(-u "ebbtide_$function"); done
    "$linker" -flavor gnu --gc-sections -e "ebbtide_$3" "${functions[@]}" \
        -o "$out/cortex-m0-$name.elf" "$target/firmware/c/thumbv6m-none-eabi/release/libebbtide.a"
    bytes=$(size -A "$out/cortex-m0-$name.elf" | awk '/^\.(text|rodata|data) / { bytes += $2 } END { print bytes }')
    echo "$name: $bytes bytes of code for Cortex-M0, at most $most"
    [ "$bytes" -le "$most" ]
}
check_size endpoint "$MOST_ENDPOINT" endpoint_init endpoint_request endpoint_cancel endpoint_receive endpoint_poll endpoint_serve endpoint_changed message_option
check_size control "$MOST" init admit on_transmit on_expire on_feedback on_close
