#!/usr/bin/env bash
# Runs the tests of packages with a built program: `run.sh PROGRAM`; `run.sh PROGRAM chart` runs those of container and
# chart.
set -euo pipefail

RINGER_PROGRAM=$(realpath "$1")
export RINGER_PROGRAM
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
python=python3 pattern='test_*.py'
if [ "${2:-}" = chart ]; then
    python=$(realpath "${CARGO_TARGET_DIR:-target}")/packaging/tools/venv/bin/python pattern='check_*.py'
fi
exec "$python" -W error::ResourceWarning -m unittest discover --start-directory tests/packaging --pattern "$pattern"
