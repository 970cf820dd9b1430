#!/usr/bin/env bash
# Servers side by side: the limit (a C responder), libcoap, Californium, go-coap, aiocoap and ours,
# each on core 0, `ebbtide bench` on core 1, interleaved in rounds on one machine.
#
#   interop/build.sh && cargo build --release -p ebbtide-cli && scripts/bench_peers.sh [ROUNDS] [SECONDS]
#
# Prints a table: requests/s, CPU per request, p50 and p99 and lost requests at windows of 1 and 64
# of one port and at 400 ports, and the most memory; medians over the rounds.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
rounds=${1:-3} span=${2:-2} target=${CARGO_TARGET_DIR:-target}
ebbtide=$target/release/ebbtide peers=$target/interop
port=${PORT:-15900} results=$(mktemp)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -f "$results"' EXIT

cpu() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }

measure() { # NAME PATH COMMAND...
    local name=$1 path=$2 load before json
    shift 2
    port=$((port + 1))
    GOMAXPROCS=1 taskset -c 0 "${@//PORT/$port}" >/dev/null 2>&1 &
    server=$!
    sleep "${WARM:-0.5}"
    [ "$name" != californium ] || sleep 3
    for load in "1 1" "1 64" "400 1"; do
        # shellcheck disable=SC2086 # two words: clients and window
        set -- $load
        before=$(cpu $server)
        json=$(taskset -c 1 "$ebbtide" bench "coap://127.0.0.1:$port$path" --clients "$1" \
            --window "$2" --duration "$span" --json 2>/dev/null) || true
        [ -z "$json" ] || echo "$name|$1|$2|$before|$(cpu $server)|$(awk '/VmHWM/ { print $2 }' \
            /proc/$server/status)|$json" >>"$results"
    done
    kill $server
    wait $server 2>/dev/null || true
    server=
}

for _ in $(seq "$rounds"); do
    [ ! -x "$peers/limit/peer" ] || measure limit /test "$peers/limit/peer" PORT
    measure ebbtide /test "$ebbtide" serve --bind 127.0.0.1:PORT
    ! command -v coap-server-notls >/dev/null ||
        measure libcoap /time coap-server-notls -A 127.0.0.1 -p PORT -v 0
    for peer in californium go-coap aiocoap; do
        [ ! -x "$peers/$peer/peer" ] || measure $peer /test "$peers/$peer/peer" server PORT
    done
done

python3 - "$results" <<'PY'
import collections, json, os, statistics, sys
rows = collections.defaultdict(list)
for line in open(sys.argv[1]):
    name, clients, window, before, after, rss, text = line.split("|", 6)
    one = json.loads(text)
    one["cpu"] = (int(after) - int(before)) * 1e6 / os.sysconf("SC_CLK_TCK") / max(1, one["answered"])
    one["rss"] = int(rss) / 1024
    rows[name, f"{clients} x {window}"].append(one)
print("| server | ports x window | requests/s | CPU us/request | p50 us | p99 us | lost | MB |")
print("|---|---|---|---|---|---|---|---|")
for (name, load), runs in rows.items():
    median = lambda key: statistics.median(run[key] for run in runs)
    rates = [run["per_second"] for run in runs]
    print(f"| {name} | {load} | {median('per_second'):,.0f} ({min(rates):,.0f} to {max(rates):,.0f}) |"
          f" {median('cpu'):.2f} | {median('p50_us'):.0f} | {median('p99_us'):.0f} |"
          f" {sum(run['failed'] for run in runs)} | {max(run['rss'] for run in runs):.0f} |")
PY
