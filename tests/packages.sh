#!/usr/bin/env bash
# Runs the tests of the libraries from a build of the whole workspace: `packages.sh PACKAGE ...`. Cargo would choose other features of
# the dependencies for these packages alone, and compile them a second time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
built=$(${CARGO:-cargo} test --locked --workspace --no-run --message-format json 2>/dev/null) \
    || { ${CARGO:-cargo} test --locked --workspace --no-run; exit 1; }
failed=0
for package in "$@"; do
    binaries=$(jq -r --arg package "$package" 'select(.executable and .profile.test and (.manifest_path | endswith("/\($package)/Cargo.toml"))) | .executable' <<<"$built")
    [ -n "$binaries" ] || { echo "no tests of $package were built" >&2; exit 1; }
    for binary in $binaries; do
        printf '\n%s\n' "$binary"
        (cd "$package" && "$binary") || failed=1
    done
done
exit $failed
