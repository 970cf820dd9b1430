#!/usr/bin/env bash
# Many requests at once through a gateway to the devices of one nb-iot cell: studies/gateways.md.
#
#   gateway.sh http|coap COUNT DEVICES SECONDS GATEWAY...
#
# GATEWAY is a command that listens at 10.83.0.1:5683 for CoAP, or at 127.0.0.1:8080 for HTTP. EBBTIDE is the program (target/release/ebbtide).
set -euo pipefail
mode=$1 count=$2 devices=$3 seconds=$4
shift 4
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ebbtide=$(realpath "${EBBTIDE:-$here/../../target/release/ebbtide}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
at=127.0.0.1:8080
[ "$mode" = http ] || at=10.83.0.1:5683
cat >"$work/gateway" <<S
ip link set lo up
$(printf '%q ' "$@") >&2 &
sleep 4
python3 '$here/gateway_load.py' $mode $at $count $devices $seconds >'$work/result'
touch '$work/done'
sleep 30
S
binds=$(for d in $(seq 1 "$devices"); do printf -- '--bind 10.83.%d.%d:5683 ' $((1 + d / 256)) $((d % 256)); done)
cat >"$work/devices" <<S
'$ebbtide' serve $binds >/dev/null &
until [ -e '$work/done' ]; do sleep 1; done
sleep 3
kill \$!
S
"$ebbtide" emulate --link nb-iot --hosts "$devices" --json --server "bash $work/gateway" -- bash "$work/devices" >"$work/summary"
cat "$work/result"
tail -1 "$work/summary"
