#!/usr/bin/env bash
# Compiles studies/four-questions/paper.tex with two exported figures, and checks that every font is embedded and none is
# of Type 3, as IEEE and ACM require. Needs pdflatex (texlive-latex-base) and pdffonts (poppler-utils).
#
#     bash studies/scripts/paper.sh target/release/ebbtide [DIR]
set -euo pipefail
ebbtide=$(realpath "$1")
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
work=${2:-$here/../target/paper}
mkdir -p "$work"
cd "$work"
"$ebbtide" run morning --cc default,fasor-token --reps 5 --series --out results > run.txt
"$ebbtide" export results --figure exchange-time-by-congestion-control --output time.pdf
"$ebbtide" export results --figure queue-length-over-replications-over-time-default --output queue.pdf
# Twice: the first run writes down where the figures are.
for _ in 1 2; do
    pdflatex -interaction=nonstopmode -halt-on-error "$here/four-questions/paper.tex" > latex.txt
done
pdffonts paper.pdf
pdffonts paper.pdf | tail -n +3 | awk '/Type 3/ || $(NF-4) != "yes" { bad = 1 } END { exit bad }'
echo "every font is embedded, and none is of Type 3: $work/paper.pdf"
