#!/usr/bin/env bash
# Installs what the tests of the clients use into a folder: `tools.sh DIR`. Packages of Python are kept as wheels too, from which
# environments are made without a network.
set -euo pipefail
mkdir -p "$1/typescript"
tools=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
cmp -s tests/clients/requirements.txt "$tools/installed.txt" || {
    rm -rf "$tools/wheels"
    python3 -m venv --clear "$tools/venv"
    "$tools/venv/bin/pip" wheel --quiet --disable-pip-version-check --wheel-dir "$tools/wheels" -r tests/clients/requirements.txt
    "$tools/venv/bin/pip" install --quiet --disable-pip-version-check --no-index --find-links "$tools/wheels" \
        -r tests/clients/requirements.txt
    cp tests/clients/requirements.txt "$tools/installed.txt"
}
cmp -s clients/typescript/package-lock.json "$tools/typescript/installed.json" || {
    cp clients/typescript/package.json clients/typescript/package-lock.json "$tools/typescript/"
    npm ci --silent --no-audit --no-fund --ignore-scripts --prefix "$tools/typescript"
    cp clients/typescript/package-lock.json "$tools/typescript/installed.json"
}
