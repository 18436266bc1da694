#!/usr/bin/env bash
# Prints how many times the CPU time of a minimal loop (floor.c) a full call of PCMU takes. Both take turns, as the machine's speed may
# change within a minute; the median of the ratios counts.
# Usage: run.sh PROGRAM; CALLS, SECONDS_EACH and ROUNDS change what is measured.
set -euo pipefail
program=$(realpath "$1"); here=$(realpath "$(dirname "$0")")
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
calls=${CALLS:-200} each=${SECONDS_EACH:-10} rounds=${ROUNDS:-5}
cc -O2 -o "$folder/floor" "$here/floor.c" -lm
cd "$folder"
for round in $(seq "$rounds"); do
    least=$(./floor "$calls" "$each")
    full=$("$program" load --calls "$calls" --seconds "$each" | sed -n 's/^CPU *\([0-9.]*\) ms a call and second.*/\1/p')
    awk "BEGIN { printf \"round $round: %.3f ms of CPU a call and second, the floor %.3f: %.2f times\\n\", $full, $least, $full / $least }"
    awk "BEGIN { print $full / $least }" >>ratios
done
sort -n ratios | awk '{ all[NR] = $1 } END { printf "median %.2f times the floor\n", all[int((NR + 1) / 2)] }'
