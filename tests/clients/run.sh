#!/usr/bin/env bash
# Runs the tests of the clients with a built program: `run.sh PROGRAM`. `tools.sh` installs what they use.
set -euo pipefail
RINGER_PROGRAM=$(realpath "$1")
export RINGER_PROGRAM XDG_DATA_HOME=/nonexistent
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# Both wait for real calls, and for each other's processors only at the start.
said=$(mktemp)
trap 'rm -f "$said"' EXIT
python3 -W error::ResourceWarning -m unittest discover --start-directory tests/clients --pattern test_typescript.py >"$said" 2>&1 &
typescript=$!
failed=0
python3 -W error::ResourceWarning -m unittest discover --start-directory tests/clients --pattern test_python.py || failed=1
wait "$typescript" || failed=1
cat "$said"
exit $failed
