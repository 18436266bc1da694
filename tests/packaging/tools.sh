#!/usr/bin/env bash
# Brings the tools that check container, chart and workflow into a folder, once: `tools.sh FOLDER`. They are built by Go
# (1.26 or newer) and installed by pip.
set -euo pipefail

folder=$(realpath -m "$1")
cd "$(dirname "${BASH_SOURCE[0]}")"
command -v go >/dev/null || { echo 'make chart: Go is not installed: install Go 1.26 or newer (https://go.dev/dl)' >&2; exit 1; }
mkdir -p "$folder/bin"
# Name of the program, package, version.
while read -r name package version; do
    [ ! -x "$folder/bin/$name-$version" ] || continue
    echo "Building $name $version"
    made=$(mktemp -d)
    GOBIN=$made go install "$package@$version" || { echo "make chart: $package@$version could not be built" >&2; exit 1; }
    mv "$made"/* "$folder/bin/$name-$version"
    rmdir "$made"
    ln -sfn "$name-$version" "$folder/bin/$name"
done <<'END'
helm helm.sh/helm/v3/cmd/helm v3.22.0
compose github.com/compose-spec/compose-go/v2/cmd v2.16.2
actionlint github.com/rhysd/actionlint/cmd/actionlint v1.7.12
END
cmp -s requirements.txt "$folder/installed.txt" || {
    python3 -m venv --clear "$folder/venv"
    "$folder/venv/bin/pip" install --quiet --disable-pip-version-check -r requirements.txt
    cp requirements.txt "$folder/installed.txt"
}
