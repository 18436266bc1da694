#!/usr/bin/env bash
# Copies the package in TypeScript beside its tools: `copy.sh TOOLS`. Modules are found in the folders above a file.
set -euo pipefail
work=$(realpath "$1")/typescript
cd "$(dirname "${BASH_SOURCE[0]}")/../../clients/typescript"
rm -rf "$work"/{src,test,examples,dist}
cp -RL src test examples README.md LICENSE* package.json package-lock.json tsconfig*.json vitest.config.ts "$work/"
rm -f "$work/src/schema.ts"
