#!/usr/bin/env bash
# Runs the tests of packages from a build of the whole workspace: `packages.sh PACKAGE ...`, or `packages.sh` for all but the root
# package. Cargo would choose other features of the dependencies for a package alone, and compile them a second time.
set -euo pipefail
cd -P "$(dirname "${BASH_SOURCE[0]}")/.."
built=$(${CARGO:-cargo} test --locked --workspace --no-run --message-format json 2>/dev/null) \
    || { ${CARGO:-cargo} test --locked --workspace --no-run; exit 1; }
# Lines of a package's folder and a test binary of it.
binaries=$(jq -r 'select(.executable and .profile.test) | "\(.manifest_path | rtrimstr("/Cargo.toml")) \(.executable)"' <<<"$built")
if [ $# -eq 0 ]; then
    mapfile -t folders < <(cut -d ' ' -f 1 <<<"$binaries" | sort -u | grep -v -x -F "$PWD")
else
    folders=("$@")
fi
failed=0
for folder in "${folders[@]}"; do
    own=$(awk -v name="/${folder##*/}" 'substr($1, length($1) - length(name) + 1) == name { print $2 }' <<<"$binaries")
    [ -n "$own" ] || { echo "no tests of $folder were built" >&2; exit 1; }
    for binary in $own; do
        printf '\n%s\n' "$binary"
        (cd "$(awk -v binary="$binary" '$2 == binary { print $1 }' <<<"$binaries")" && "$binary") || failed=1
    done
done
exit $failed
