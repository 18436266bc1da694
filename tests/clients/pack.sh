#!/usr/bin/env bash
# Packs ringer-client for npm: `pack.sh TARGET` writes into TARGET/packages, with the tools in TARGET/clients.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
target=$(realpath "$1")
mkdir -p "$target/packages"
tests/clients/copy.sh "$target/clients"
RINGER_DOCUMENT=$PWD/fixtures/api/openapi.json npm pack --silent --pack-destination "$target/packages" "$target/clients/typescript"
