#!/usr/bin/env bash
# The emulator against the simulator: the library's own clients and server with real sockets behind
# the emulated nb-iot, compared with the simulated flow completion times cell by cell.
#
#   studies/scripts/emulator_agrees.sh EBBTIDE [JOBS] [RUNS]     needs root or user namespaces
#
# Each cell is emulated RUNS times (default 3) with seeds of its own, JOBS (default 6) at a time, and
# simulated with 20 replications. A run takes as long as its flows, 35 to 70 s.
set -euo pipefail
ebbtide=$(realpath "$1") jobs=${2:-6} runs=${3:-3}
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
export ebbtide folder

emulate() { # CLIENTS BUFFER ERRORS CC RUN
    local set=(--set "clients=$1" --set "buffer=$2" --set "errors=$3") file="$folder/$1 $2 $3 $4 $5"
    "$ebbtide" emulate --link nb-iot "${set[@]}" --seed "$5" --json \
        --server "exec '$ebbtide' serve --scenario nb-iot" -- \
        "$ebbtide" bench coap://10.83.0.1/value --scenario nb-iot "${set[@]}" --cc "$4" \
        --simulate 20 --json >"$file" 2>"$folder/errors" || true
}
export -f emulate

cells=()
for clients in 10 50; do
    for buffer in 2500 infinite; do
        for cc in default cocoa fasor-token; do cells+=("$clients $buffer none $cc"); done
    done
done
for cc in default cocoa fasor-token; do cells+=("10 infinite low $cc"); done

for cell in "${cells[@]}"; do
    for run in $(seq "$runs"); do echo "$cell $run"; done
done | xargs -P "$jobs" -L 1 bash -c 'emulate "$@"' _
python3 "$(dirname "$0")/emulator_table.py" "$folder" "${cells[@]}"
