#!/usr/bin/env bash
# libcoap's client and server 35 s away from each other, compared with the simulated `default`.
#
#   studies/scripts/emulator_long_path.sh EBBTIDE FLOW     some three minutes; needs root or user namespaces
#
# FLOW is interop/libcoap/flow.c, which `interop/build.sh libcoap-c` builds. Three clients make one request
# each: with ACK_TIMEOUT 120 s, which exceeds the round trip, and with RFC 7252's 2 s, when the fifth copy
# leaves after 30 to 45 s, and a sixth after 62 to 93 s if no answer was there after 70. Fails unless libcoap's
# transmissions and times are those of the simulator.
set -euo pipefail
ebbtide=$(realpath "$1") flow=$(realpath "$2")
path=(--set "network.up.delay=35 s" --set "network.down.delay=35 s" --set buffer=infinite)

one() { # ACK_TIMEOUT, the fewest and the most transmissions
    local simulated measured
    simulated=$("$ebbtide" run nb-iot "${path[@]}" --set clients=3 --set exchanges=1 --reps 1 --json \
        --set "coap.ack_timeout=$1 s" --cc default:bound=none | python3 -c '
import json, sys
cell = json.load(sys.stdin)["cells"][0]
print(cell["packets"]["up"]["sent"], "%.2f" % cell["fct_s"]["median"])')
    measured=$("$ebbtide" emulate --link nb-iot "${path[@]}" --seed 1 \
        --server "exec '$flow' server 10.83.0.1" -- "$flow" client 10.83.0.1 3 1 "$1" 2>&1 |
        awk '/^[0-9.]+$/ { time[++n] = $1 } $1 == "up" { sent = $2 }
            END { printf "%d %.2f", sent, time[int((n + 1) / 2)] }')
    echo "ACK_TIMEOUT $1 s: transmissions and time of the second client: simulated $simulated, libcoap $measured"
    python3 - "$2" "$3" $simulated $measured <<'PY'
import sys
least, most, simulated, seconds, sent, measured = map(float, sys.argv[1:])
if not (least <= sent <= most and least <= simulated <= most and abs(measured - seconds) < 0.1):
    sys.exit("libcoap and the simulator differ")
PY
}

one 120 3 3
one 2 15 18
