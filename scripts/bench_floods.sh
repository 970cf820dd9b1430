#!/usr/bin/env bash
# What a flood costs those who are there: an honest client's rate while so many datagrams a second
# come from 100,000 addresses, over its rate while the same flood goes to a port where nobody looks.
# Server on core 0, client and flood on core 1; the two in turns.
#
#   interop/build.sh limit && cargo build --release -p ebbtide-cli
#   scripts/bench_floods.sh [ROUNDS] [DATAGRAMS PER SECOND]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=${CARGO_TARGET_DIR:-target} rounds=${1:-5} rate=${2:-5000} span=3
ebbtide=$target/release/ebbtide port=$((20000 + RANDOM % 20000))
taskset -c 0 "$ebbtide" serve --bind 127.0.0.1:$port >/dev/null 2>&1 &
server=$!
# It binds a port and sleeps.
python3 -c "import socket, time; s = socket.socket(type=socket.SOCK_DGRAM); s.bind(('127.0.0.1', $((port + 1)))); time.sleep(3600)" &
sink=$!
trap 'kill $server $sink' EXIT
sleep 0.5

honest() { # PORT of the flood
    taskset -c 1 "$target/interop/limit/flood" "$1" "$rate" 100000 $((span + 1)) &
    sleep 0.3
    taskset -c 1 "$ebbtide" bench "coap://127.0.0.1:$port/test" --duration $span --json |
        grep -o '"per_second":[0-9.]*' | cut -d: -f2
    wait $!
}

for _ in $(seq "$rounds"); do
    alone=$(honest $((port + 1)))
    flooded=$(honest $port)
    awk -v a="$alone" -v f="$flooded" -v m="$(awk '/VmRSS/ { print $2 }' /proc/$server/status)" \
        'BEGIN { printf "alone %.0f/s, flooded %.0f/s: %.2f; server %.1f MB\n", a, f, f / a, m / 1024 }'
done
