#!/usr/bin/env bash
# Runs each program given with 1 and with 2 threads on the same scenario and seed: the JSON
# document (without wall_s, which is the machine's) and every Parquet file must be identical.
#
#   scripts/same-answer.sh PROGRAM...
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
first=
for program; do
    for jobs in 1 2; do
        out=$dir/$((n = ${n:-0} + 1))
        mkdir "$out"
        "$program" run nb-iot --set clients=10,50 --set buffer=2500,infinite --set errors=none,low \
            --set exchanges=10 --cc all --reps 3 --seed 7 --jobs "$jobs" --out "$out/run" --json |
            sed -E 's/"wall_s": ?[0-9.eE+-]+/"wall_s":0/g' >"$out/answer.json"
        [ -s "$out/answer.json" ] || { echo "$program printed nothing" >&2; exit 1; }
        (cd "$out" && find . -name '*.parquet' -o -name answer.json | sort | xargs sha256sum) >"$out/sums"
        grep -q parquet "$out/sums" || { echo "$program wrote no Parquet file" >&2; exit 1; }
        if [ -z "$first" ]; then
            first=$out
        elif ! diff "$first/sums" "$out/sums"; then
            echo "$program --jobs $jobs: not the answer that $1 --jobs 1 gave" >&2
            diff "$first/answer.json" "$out/answer.json" | cut -c1-400 | head -20 >&2 || true
            exit 1
        fi
    done
done
