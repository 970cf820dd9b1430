#!/usr/bin/env bash
# libcoap's clients behind the emulated nb-iot, with its own timeouts and with those of ebbtide-c, beside the library's own endpoints.
# Nothing is lost there, so every transmission beyond one for each exchange is unnecessary.
#
#   studies/scripts/emulator_control_in_c.sh EBBTIDE FLOW [CLIENTS] [EXCHANGES]     needs root or user namespaces
#
# FLOW is interop/libcoap/flow.c, which `interop/build.sh libcoap-c` builds.
set -euo pipefail
ebbtide=$(realpath "$1") flow=$(realpath "$2") clients=${3:-100} exchanges=${4:-20}
at=10.83.0.1
settings=(--set "clients=$clients")

emulate() { # NAME SERVER COMMAND...
    "$ebbtide" emulate --link nb-iot "${settings[@]}" --json --server "exec $2" -- "${@:3}" 2>/dev/null | tail -1 |
        python3 -c 'import json, sys
summary = json.load(sys.stdin)["summary"]
sent, needed, seconds = summary["up"]["sent"], int(sys.argv[2]), summary["seconds"]
print(f"{sys.argv[1]:28} {sent:6} sent, {100 * (sent - needed) / sent:4.1f} % unnecessary, {seconds:6.1f} s")' \
            "$1" $((clients * exchanges))
}

emulate "libcoap" "'$flow' server $at" "$flow" client $at "$clients" "$exchanges" 2
emulate "libcoap with ebbtide-c" "'$flow' server $at" "$flow" client $at "$clients" "$exchanges" ebbtide
emulate "Ebbtide, fasor-token" "'$ebbtide' serve --scenario nb-iot" \
    "$ebbtide" bench coap://$at/value --scenario nb-iot "${settings[@]}" --set "exchanges=$exchanges" --cc fasor-token --json
