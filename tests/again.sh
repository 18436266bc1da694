#!/usr/bin/env bash
# Runs the integration tests that the file LIST names, one at a time: `again.sh LIST`. A file that is not there names none.
set -euo pipefail
[ -s "$1" ] || exit 0
mapfile -t names < <(sort -u "$1")
printf 'These failed while others used the machine: %s\n' "${names[*]}"
exec ${CARGO:-cargo} test --locked --no-fail-fast --test integration -- --exact --test-threads 1 "${names[@]}"
