#!/usr/bin/env bash
# libcoap's client and server behind the emulated nb-iot, compared with the simulated `default`.
#
#   studies/scripts/emulator_libcoap.sh EBBTIDE FLOW [RUNS]      needs root or user namespaces
#
# FLOW is interop/libcoap/flow.c, which `interop/build.sh libcoap-c` builds. Prints the medians of the
# flow completion times of 1, 10 and 50 clients over RUNS runs (default 3) each.
set -euo pipefail
ebbtide=$(realpath "$1") flow=$(realpath "$2") runs=${3:-3}
median() { sort -n | awk '{ a[NR] = $1 } END { printf "%.3f", (a[int((NR + 1) / 2)] + a[int(NR / 2) + 1]) / 2 }'; }

echo "clients buffer    simulated  libcoap"
for buffer in 2500 infinite; do
    for clients in 1 10 50; do
        simulated=$("$ebbtide" run nb-iot --cc default --set "clients=$clients" --set "buffer=$buffer" --json |
            python3 -c 'import json, sys; print(json.load(sys.stdin)["cells"][0]["fct_s"]["median"])')
        measured=$(for seed in $(seq "$runs"); do
            "$ebbtide" emulate --link nb-iot --set "buffer=$buffer" --seed "$seed" \
                --server "exec '$flow' server 10.83.0.1" -- "$flow" client 10.83.0.1 "$clients" 50 2>/dev/null &
        done | median)
        printf '%7d %-9s %9.3f %8.3f\n' "$clients" "$buffer" "$simulated" "$measured"
    done
done
