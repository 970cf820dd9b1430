#!/usr/bin/env bash
# Servers side by side, each on core 0 with `ebbtide bench` on core 1, in rounds on one machine; and
# sequential clients against one responder.
#
#   interop/build.sh && cargo build --release -p ebbtide-cli
#   cargo build --release -p ebbtide --example tokio_floor      # one more client
#   studies/scripts/bench_peers.sh                  # one round over all peers, about 90 s
#   studies/scripts/bench_peers.sh limit ebbtide    # one round over some
#   studies/scripts/bench_peers.sh --table          # what all rounds so far gave
#
# Peers: limit (a C responder), ebbtide, ebbtide-busy (with --busy-poll 200), libcoap, californium,
# go-coap, aiocoap; clients (sequential ones); ten-million (our memory after so many requests). A
# round is appended to RESULTS (target/bench_peers.txt); the table has medians, lowest and highest.
# SPAN is the seconds of one load. Loads are PORTS x WINDOW, or PORTS x WINDOW from so many addresses
# in turn.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
target=${CARGO_TARGET_DIR:-target} span=${SPAN:-1.5}
results=${RESULTS:-$target/bench_peers.txt} ebbtide=$target/release/ebbtide
peers=${PEERS:-$target/interop}
port=$((20000 + RANDOM % 20000)) server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true' EXIT

cpu() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }
peak() { awk '/VmHWM/ { print $2 }' "/proc/$1/status"; }

start() { # COMMAND...
    port=$((port + 1))
    GOMAXPROCS=1 taskset -c 0 "${@//PORT/$port}" >/dev/null 2>&1 &
    server=$!
    sleep "$warm"
}

stop() {
    kill $server
    wait $server 2>/dev/null || true
    server=
}

ask() { # ARGUMENTS... of bench
    taskset -c 1 "$ebbtide" bench "coap://127.0.0.1:$port/test" --json "$@" 2>/dev/null || true
}

serve() { # NAME COMMAND...
    local name=$1 load before json
    shift
    start "$@"
    for load in "1 1" "1 64" "400 1" "1 64 64" "1 64 100000"; do
        # shellcheck disable=SC2086 # words: ports, window, addresses
        set -- $load
        before=$(cpu $server)
        json=$(ask --clients "$1" --window "$2" ${3:+--addresses "$3"} --duration "$span")
        [ -z "$json" ] || echo "$name|$1 x $2${3:+ from $3}|$before|$(cpu $server)|$(peak $server)|$json" >>"$results"
    done
    stop
}

clients() {
    local asked
    start "$peers/limit/peer" PORT
    echo "clients|C generator|$(taskset -c 1 "$peers/limit/generator" $port "$span")" >>"$results"
    echo "clients|libcoap|$(taskset -c 1 "$peers/libcoap/peer" bench $port "$span")" >>"$results"
    if [ -x "$target/release/examples/tokio_floor" ]; then
        echo "clients|tokio, no CoAP|$(taskset -c 1 "$target/release/examples/tokio_floor" $port "$span")" >>"$results"
    fi
    asked=$(ask --engine client --duration "$span" | grep -o '"per_second":[0-9]*')
    echo "clients|ebbtide|${asked#*:}" >>"$results"
    stop
}

measure() { # PEER
    warm=0.3
    case $1 in
    limit) serve limit "$peers/limit/peer" PORT ;;
    ebbtide) serve ebbtide "$ebbtide" serve --bind 127.0.0.1:PORT ;;
    ebbtide-busy) serve "ebbtide, --busy-poll 200" "$ebbtide" serve --bind 127.0.0.1:PORT --busy-poll 200 ;;
    californium) warm=3 && serve "$1" "$peers/$1/peer" server PORT ;;
    libcoap | go-coap | aiocoap) warm=1 && serve "$1" "$peers/$1/peer" server PORT ;;
    clients) clients ;;
    ten-million)
        start "$ebbtide" serve --bind 127.0.0.1:PORT
        echo "ten-million|$(ask --window 64 --requests 10000000 --duration 140 | grep -o '"answered":[0-9]*')|$(peak $server)" >>"$results"
        stop
        ;;
    *) echo "$1: no such peer" >&2 && return 2 ;;
    esac
}

table() {
    python3 - "$results" <<'PY'
import collections, json, os, statistics, sys
rows, clients = collections.defaultdict(list), collections.defaultdict(list)
for line in open(sys.argv[1]):
    name, load, *rest = line.strip().split("|", 5)
    if name == "clients":
        clients[load].append(float(rest[0]))
    elif name == "ten-million":
        print(f"{load}: at most {int(rest[0]) / 1024:.1f} MB\n")
    else:
        before, after, peak, text = rest
        one = json.loads(text)
        one["cpu"] = (int(after) - int(before)) * 1e6 / os.sysconf("SC_CLK_TCK") / max(1, one["answered"])
        one["mb"] = int(peak) / 1024
        rows[load, name].append(one)
rate = lambda runs: statistics.median(run["per_second"] for run in runs)
print("| ports x window | server | requests/s (lowest to highest) | of the limit | CPU us/request | p50 us | p99 us | lost | MB |")
print("|---|---|---|---|---|---|---|---|---|")
for load in dict.fromkeys(load for load, _ in rows):
    limit = rows.get((load, "limit"))
    of_load = {name: runs for (other, name), runs in rows.items() if other == load}
    for name, runs in sorted(of_load.items(), key=lambda row: -rate(row[1])):
        median = lambda key: statistics.median(run[key] for run in runs)
        rates = [run["per_second"] for run in runs]
        ratio = f"{rate(runs) / rate(limit):.2f}" if limit else ""
        print(f"| {load} | {name} | {rate(runs):,.0f} ({min(rates):,.0f} to {max(rates):,.0f}) | {ratio} |"
              f" {median('cpu'):.2f} | {median('p50_us'):,.0f} | {median('p99_us'):,.0f} |"
              f" {sum(run['failed'] for run in runs)} | {max(run['mb'] for run in runs):,.0f} |")
if clients:
    print("\n| sequential client | requests/s (lowest to highest) |\n|---|---|")
for name, rates in clients.items():
    print(f"| {name} | {statistics.median(rates):,.0f} ({min(rates):,.0f} to {max(rates):,.0f}) |")
PY
}

if [ "${1:-}" = --table ]; then
    table
    exit
fi
[ $# -gt 0 ] || set -- limit ebbtide ebbtide-busy libcoap californium go-coap aiocoap clients
for peer in "$@"; do
    measure "$peer"
done
