#!/usr/bin/env bash
# Linux TCP under nb-iot's workloads: the library's CoAP over TCP on both sides of the emulated link,
# the kernel's Reno below, set as near to the papers' as this kernel can be.
#
#   studies/scripts/emulator_tcp.sh EBBTIDE FOLDER CLIENTS BUFFER WORKLOAD ERRORS SEED     needs root or user namespaces
#
# Leaves in FOLDER two lines of JSON (bench's, emulate's) in "CLIENTS BUFFER WORKLOAD ERRORS SEED"
# and a capture next to them.
set -euo pipefail
ebbtide=$(realpath "$1") folder=$2
shift 2
[ $# = 5 ] || { sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
set=(--set "clients=$1" --set "buffer=$2" --set "errors=$4")

# In a namespace, for all that follows there. Not to be had: an initial RTO of 2 s (it is 1 s) and a
# fixed delay of acknowledgements (it is 40 to 200 ms).
tune='
    cd /proc/sys/net/ipv4
    echo reno >tcp_congestion_control   # NewReno where there is no SACK
    echo 0 >tcp_sack
    echo 0 >tcp_timestamps
    echo 0 >tcp_fastopen
    echo 0 >tcp_ecn
    echo 0 >tcp_early_retrans           # no tail loss probes
    echo 1 >tcp_no_metrics_save         # nothing is learnt for the next connection
    echo 40 >tcp_syn_retries
    echo 40 >tcp_synack_retries
    echo 0 >tcp_syn_linear_timeouts     # doubled from the first on
    echo 255 >tcp_retries2
    echo 0 >tcp_syncookies
    echo 4096 >tcp_max_syn_backlog
    cd /'
export tune ebbtide
"$ebbtide" emulate --link nb-iot "${set[@]}" --seed "$5" --json --pcap "$folder/$*.pcapng" \
    --server 'eval "$tune"; exec "$ebbtide" serve --scenario nb-iot' -- \
    sh -c 'eval "$tune"; exec "$ebbtide" bench coap+tcp://10.83.0.1/value --scenario nb-iot "$@"' _ \
    --set "clients=$1" --set "workload=$3" --seed "$5" --json >"$folder/$*"
