#!/usr/bin/env bash
# Draws docs/img/collapse.svg anew: goodput over the number of devices of an NB-IoT cell.
#
#   scripts/collapse_curve.sh EBBTIDE [FOLDER]     four minutes of processor time; FOLDER keeps the results
#
# EBBTIDE is a release build. Delete FOLDER (default target/collapse) when a control has changed.
set -euo pipefail
ebbtide=$(realpath "$1") folder=${2:-$(dirname "$0")/../target/collapse} picture=$(dirname "$0")/../docs/img/collapse.svg
"$ebbtide" run nb-iot --curve clients=10..100000 --set buffer=infinite --set exchanges=8 \
    --cc default,cocoa,fasor-token,ebb --reps 2 --out "$folder"
"$ebbtide" export "$folder" --figure curve-of-goodput-over-clients --format svg --width page --output - |
    # Readable on a dark page, too.
    sed 's|^<desc>.*|&\n<rect width="100%" height="100%" rx="6" fill="#ffffff"/>|' >"$picture"
