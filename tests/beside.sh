#!/usr/bin/env bash
# Runs integration tests while others use the machine: `beside.sh LIST ARGUMENT ...`, the arguments are libtest's. Calls are held in
# real time: what fails here may have waited for a core. Names of at most MOST failed tests go to the file LIST, and are no failure yet:
# `again.sh LIST` runs them one by one, with the machine to themselves, and that counts.
set -euo pipefail
most=8
list=$1
shift
log=$(mktemp)
trap 'rm -f "$log"' EXIT
code=0
${CARGO:-cargo} test --locked --no-fail-fast --test integration -- "$@" 2>&1 | tee "$log" || code=$?
[ $code -ne 0 ] || exit 0
# The last block of names is libtest's own; a test that runs others has theirs in its output.
names=$(awk '/^failures:$/ { names = ""; next } /^    [^ ]+::[^ ]+$/ { names = names $1 "\n" } END { printf "%s", names }' "$log")
count=$(grep -c . <<<"$names" || true)
if ! grep -q "^test result: FAILED. .* $count failed;" "$log" || [ "$count" -gt $most ]; then exit $code; fi
printf '%s\n' "$names" >>"$list"
