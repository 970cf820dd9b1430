#!/usr/bin/env bash
# Builds the peers that interop tests and benchmarks talk to, each into TARGET/interop/NAME with
# one program NAME/peer; README.md says what it takes. What is newer than its sources stays.
#
#   interop/build.sh [libcoap] [libcoap-q] [aiocoap] [californium] [go-coap] [mbedtls] [limit] [libcoap-c]   (all without)
#   interop/build.sh matrix        the adapters of the matrix: interop/run.py
#
# limit and libcoap-c are for measuring: studies/scripts/bench_peers.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
target=$(mkdir -p "${CARGO_TARGET_DIR:-../target}/interop" && cd "${CARGO_TARGET_DIR:-../target}/interop" && pwd)

need() { command -v "$1" >/dev/null || { echo "$1 is missing ($2)" >&2; return 1; }; }

fresh() { # NAME
    [ -x "$target/$1/peer" ] && [ -z "$(find "$1" build.sh -newer "$target/$1/peer" -print -quit 2>/dev/null)" ]
}

build_libcoap() { need coap-server-notls "Debian's libcoap3-bin" && need coap-client-notls "libcoap3-bin"; }

# Unpacks packages of another suite of Debian into FOLDER/files, and downloads the upstream archive of a package's SOURCE.
from_debian() { # SUITE FOLDER [--source SOURCE] PACKAGE...
    local suite=$1 dir=$2 package source=
    shift 2
    [ "$1" != --source ] || { source=$2; shift 2; }
    mkdir -p "$dir"/{lists/partial,cache/archives/partial,files}
    # Where the machine has its packages from, of the other release.
    grep -hE -m2 '^(URIs|Signed-By):' /etc/apt/sources.list.d/debian.sources >"$dir/other.sources"
    printf 'Types: deb deb-src\nSuites: %s\nComponents: main\n' "$suite" >>"$dir/other.sources"
    local apt=(apt-get -qq -o "Dir::Etc::sourcelist=$dir/other.sources" -o Dir::Etc::sourceparts=-
        -o "Dir::State::lists=$dir/lists" -o "Dir::Cache=$dir/cache" -o "APT::Sandbox::User=$(id -un)")
    "${apt[@]}" update
    (cd "$dir" && "${apt[@]}" download "$@")
    # The suite's own changes, which may have gone already, are not needed.
    [ -z "$source" ] || (cd "$dir" && "${apt[@]}" source --download-only "$source" 2>/dev/null) || ls "$dir/$source"_*.orig.tar.* >/dev/null
    for package in "$dir"/*.deb; do dpkg-deb -x "$package" "$dir/files"; done
    rm -r "$dir"/lists "$dir"/cache "$dir"/*.deb
}

# libcoap speaks Q-Block from 4.3.2 on, Debian has that from its release 13 on. An older release's
# machine gets that one's programs beside its own, with the C library that they want.
build_libcoap-q() {
    need apt-get "a Debian system" && need dpkg-deb dpkg
    local dir=$target/libcoap-q run=""
    rm -rf "$dir" && mkdir -p "$dir"
    if dpkg --compare-versions "$(dpkg-query -W -f '${Version}' libcoap3-bin 2>/dev/null)" lt 4.3.2; then
        from_debian trixie "$dir" libcoap3-bin libcoap3t64 libc6
        run=$(echo "$dir"/files/usr/lib/*/ld-linux*.so.*)
        run="$run --library-path $(dirname "$run") $dir/files/usr/bin/"
    fi
    printf '#!/bin/sh\nprogram=$1\nshift\nexec %scoap-$program-notls "$@"\n' "$run" >"$dir/peer"
    chmod +x "$dir/peer"
    [ -n "$("$dir/peer" client -h 2>&1 | grep Usage)" ]
}

# Without RFC 9146 before Mbed TLS 3.2; the tests then leave connection IDs out.
build_mbedtls() {
    need cc gcc
    echo '#include <mbedtls/ssl.h>' | cc -E - >/dev/null 2>&1 || { echo "no headers (Debian's libmbedtls-dev)" >&2; return 1; }
    mkdir -p "$target/mbedtls"
    cc -O1 -o "$target/mbedtls/peer" mbedtls/peer.c -lmbedtls -lmbedx509 -lmbedcrypto
}

build_limit() {
    need cc gcc
    mkdir -p "$target/limit"
    cc -O2 -o "$target/limit/peer" limit/responder.c
    cc -O2 -o "$target/limit/generator" limit/generator.c
}

build_libcoap-c() {
    need cc gcc
    echo '#include <coap3/coap.h>' | cc -E - >/dev/null 2>&1 ||
        { echo "libcoap-c: no headers (Debian's libcoap3-dev), left out" >&2; return 0; }
    mkdir -p "$target/libcoap"
    cc -O2 -o "$target/libcoap/peer" libcoap/peer.c -lcoap-3-notls
    cargo build --quiet --release -p ebbtide-c
    cc -O2 -I ../crates/ebbtide-c/include -o "$target/libcoap/flow" libcoap/flow.c "${CARGO_TARGET_DIR:-../target}/release/libebbtide.a" -lcoap-3-notls
}

# The adapters of the matrix that are not part of a peer above. One that cannot be built is reported, and
# the matrix shows that it does not start.
build_matrix-libcoap() {
    need cc gcc
    mkdir -p "$target/libcoap"
    cc -D_GNU_SOURCE -O1 -o "$target/libcoap/matrix" libcoap/matrix.c -lcoap-3-openssl
}

# The same adapter for libcoap 4.3.4, beside the machine's own libcoap.
build_matrix-libcoap-new() {
    need cc gcc && need apt-get "a Debian system" && need dpkg-deb dpkg
    local dir=$target/libcoap-new libraries
    rm -rf "$dir" && mkdir -p "$dir"
    from_debian trixie "$dir" libcoap3-dev libcoap3t64 libssl3t64 zlib1g libzstd1 libc6
    libraries=$(dirname "$(echo "$dir"/files/usr/lib/*/libcoap-3-openssl.so.3)")
    cc -D_GNU_SOURCE -O1 -I "$dir/files/usr/include" -o "$dir/matrix" libcoap/matrix.c \
        "$libraries/libcoap-3-openssl.so.3" -Wl,--allow-shlib-undefined
    loaded_with "$libraries" "$dir"
}

# The same adapter for the libcoap of Debian's unstable release, with its wolfSSL, which has DTLS 1.3. Debian builds libcoap
# with other libraries, so it is built here.
build_matrix-libcoap-wolfssl() {
    need cc gcc && need cmake cmake && need apt-get "a Debian system" && need dpkg-deb dpkg
    local dir=$target/libcoap-wolfssl libraries
    rm -rf "$dir" && mkdir -p "$dir/source"
    from_debian sid "$dir" --source libcoap3 libwolfssl-dev libwolfssl45 libc6
    tar -xf "$dir"/libcoap3_*.orig.tar.* -C "$dir/source" --strip-components=1
    libraries=$(dirname "$(echo "$dir"/files/usr/lib/*/libwolfssl.so)")
    # That wolfSSL has connection IDs of at most two bytes.
    cmake -S "$dir/source" -B "$dir/built" -DDTLS_BACKEND=wolfssl -DWOLFSSL_INCLUDE_DIR="$dir/files/usr/include" \
        -DWOLFSSL_LIBRARIES="$libraries/libwolfssl.so" -DWOLFSSL_LIBRARY="$libraries/libwolfssl.so" \
        -DCMAKE_C_FLAGS="-DCOAP_DTLS_CID_LENGTH=2 -DDTLS_CID_MAX_SIZE=2" -DENABLE_DOCS=OFF -DENABLE_EXAMPLES=OFF >&2
    cmake --build "$dir/built" >&2
    cc -D_GNU_SOURCE -O1 -I "$dir/source/include" -I "$dir/built/include" -o "$dir/matrix" libcoap/matrix.c \
        "$dir/built/libcoap-3.a" "$libraries/libwolfssl.so" -Wl,--allow-shlib-undefined
    loaded_with "$libraries" "$dir"
}

# A program that runs FOLDER/matrix with other LIBRARIES, which want their own C library.
loaded_with() { # LIBRARIES FOLDER
    printf '#!/bin/sh\nexec "%s" --library-path "%s" "%s/matrix" "$@"\n' "$(echo "$1"/ld-linux*.so.*)" "$1" "$2" >"$2/peer"
    chmod +x "$2/peer"
}

build_coap-rs() {
    need cargo Rust
    CARGO_TARGET_DIR=$target/coap-rs cargo build --quiet --manifest-path coap-rs/Cargo.toml
    cp "$target/coap-rs/debug/interop-coap-rs" "$target/coap-rs/peer"
}

build_coapcore() {
    need cargo Rust && need clang clang
    CARGO_TARGET_DIR=$target/coapcore cargo build --quiet --manifest-path coapcore/Cargo.toml
    cp "$target/coapcore/debug/interop-coapcore" "$target/coapcore/peer"
}

build_node-coap() {
    need npm "Node.js and npm"
    mkdir -p "$target/node-coap"
    cp node-coap/package.json node-coap/package-lock.json node-coap/matrix.js "$target/node-coap/"
    (cd "$target/node-coap" && npm ci --silent)
    printf '#!/bin/sh\nexec node "%s/matrix.js" "$@"\n' "$target/node-coap" >"$target/node-coap/peer"
    chmod +x "$target/node-coap/peer"
}

# The endpoint of crates/ebbtide-c.
build_ebbtide-c() {
    need cc gcc && need cargo Rust
    mkdir -p "$target/ebbtide-c"
    (cd .. && cargo build --quiet -p ebbtide-c)
    cc -std=c11 -Wall -Wextra -O1 -I ../crates/ebbtide-c/include -o "$target/ebbtide-c/peer" ebbtide-c/peer.c \
        "${CARGO_TARGET_DIR:-../target}/debug/libebbtide.a"
}

# The endpoint in fixed tables on a microcontroller, in QEMU.
build_ebbtide-firmware() {
    need cargo Rust && need qemu-system-arm "Debian's qemu-system-arm"
    (cd ../firmware && cargo build --quiet --locked --release --target thumbv7m-none-eabi --target-dir "$target/firmware" \
        --features lm3s6965 --bin device-matrix)
}

build_ebbtide() { need cargo Rust && (cd .. && cargo build --quiet -p ebbtide --example interop --features dtls13); }

build_aiocoap() {
    need python3 python3
    [ -x "$target/aiocoap/bin/python" ] || python3 -m venv "$target/aiocoap"
    "$target/aiocoap/bin/python" -I -c 'import aiocoap, websockets, cbor2, lakers' 2>/dev/null ||
        "$target/aiocoap/bin/pip" install --quiet --disable-pip-version-check 'aiocoap[ws,oscore]==0.4.17'
    "$target/aiocoap/bin/python" aiocoap/own_tests.py --fetch
    printf '#!/bin/sh\nprogram=$1\nshift\nexec "%s" "%s/aiocoap/$program.py" "$@"\n' \
        "$target/aiocoap/bin/python" "$PWD" >"$target/aiocoap/peer"
    chmod +x "$target/aiocoap/peer"
}

build_go-coap() {
    need go "Go 1.24"
    mkdir -p "$target/go-coap"
    (cd go-coap && go build -mod=mod -o "$target/go-coap/peer" .)
}

# The same adapter with the newest release.
build_go-coap-new() {
    need go "Go 1.24"
    rm -rf "$target/go-coap-new" && mkdir -p "$target/go-coap-new"
    cp -r go-coap "$target/go-coap-new/source"
    (cd "$target/go-coap-new/source" && go get github.com/plgd-dev/go-coap/v3@v3.8.1 && go build -mod=mod -o "$target/go-coap-new/peer" .)
}

build_californium() {
    need mvn Maven && need javac "Java 17"
    rm -rf "$target/californium" && mkdir -p "$target/californium"
    mvn -q -f californium/pom.xml -DbuildDirectory="$target/californium" \
        package dependency:copy-dependencies -DoutputDirectory="$target/californium/lib" >&2
    cp californium/target/interop-1.jar "$target/californium/lib/" && rm -r californium/target
    printf '#!/bin/sh\nexec java -cp "%s/lib/*" Interop "$@"\n' "$target/californium" \
        >"$target/californium/peer"
    chmod +x "$target/californium/peer"
}

# The adapter for the milestones of its next release.
build_californium-4() {
    need mvn Maven && need javac "Java 17"
    local dir=$target/californium-4
    rm -rf "$dir" && mkdir -p "$dir/source/src/main/java"
    cp californium-4/pom.xml "$dir/source/"
    cp californium/src/main/java/{Matrix,Resources}.java californium-4/Version.java "$dir/source/src/main/java/"
    mvn -q -f "$dir/source/pom.xml" package dependency:copy-dependencies -DoutputDirectory="$dir/lib" >&2
    cp "$dir/source/target/interop-1.jar" "$dir/lib/"
    printf '#!/bin/sh\nexec java -XX:TieredStopAtLevel=1 -cp "%s/lib/*" Matrix "$@"\n' "$dir" >"$dir/peer"
    chmod +x "$dir/peer"
}

[ "$*" != matrix ] || set -- matrix-libcoap matrix-libcoap-new matrix-libcoap-wolfssl coap-rs coapcore node-coap ebbtide ebbtide-c ebbtide-firmware aiocoap californium californium-4 go-coap go-coap-new
failed=0
for peer in "${@:-libcoap libcoap-q aiocoap californium go-coap mbedtls limit libcoap-c}"; do
    for name in $peer; do
        if fresh "$name"; then
            echo "$name: built before"
            continue
        fi
        # Not in a condition: there `set -e` would be off inside.
        set +e
        (set -e; "build_$name")
        rc=$?
        set -e
        if [ $rc = 0 ]; then
            [ ! -e "$target/$name/peer" ] || touch "$target/$name/peer"
            echo "$name: built"
        else
            echo "$name: FAILED" >&2
            failed=1
        fi
    done
done
exit $failed
