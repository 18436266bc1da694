#!/usr/bin/env bash
# Counts the instructions of 3,000 ticks of a call over each kind of media and compares them with the kept ones: more than 3 % above is
# a fault, more than 3 % below asks for the new figure to be kept. They depend on the compiler and on the C library.
# Usage: instructions.sh BENCH KEPT
set -euo pipefail
bench=$1 kept=$2 ticks=3000 wrong=0
count() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$bench" --ticks "$1" "$2" 2>&1 | sed -n 's/.*Collected : //p'
}
while read -r media least; do
    # The setting up is counted alone first.
    before=$(count 0 "$media"); after=$(count $ticks "$media")
    each=$(((after - before) / ticks))
    change=$(awk "BEGIN { printf \"%+.1f\", 100 * $each / $least - 100 }")
    printf '%-8s %8d instructions a tick, %8d kept: %s %%\n' "$media" $each "$least" "$change"
    if ((100 * each > 103 * least)); then wrong=1; fi
    if ((100 * each < 97 * least)); then echo "write the lower figure of $media into $kept"; fi
done < <(grep -v '^#' "$kept")
exit $wrong
