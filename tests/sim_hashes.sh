#!/usr/bin/env bash
# Prints SHA-256 hashes of the recordings and timelines of 35 simulated calls: five seeds each of PCMU, G.722, Opus, and PCMU with loss,
# and over a WebSocket in the engine's own protocol, in one of 200 ms a message, and in one of Base64 with loss.
# Usage: hashes.sh PROGRAM
set -euo pipefail
program=$(realpath "$1"); folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
cd "$folder"
sim() { "$program" sim --calls 5 --out "$@" > /dev/null; }
sim pcmu --seed 100 --codec PCMU
sim g722 --seed 200 --codec G722
sim opus --seed 300 --codec OPUS --noise cafe:0.5
sim loss --seed 400 --codec PCMU --loss 5 --burst 2 --jitter-ms 40 --reorder 2 --duplicate 1
sim websocket --seed 500 --websocket
sim websocket_hook --seed 600 --websocket audiohook --delay-ms 80
sim websocket_loss --seed 700 --websocket twilio_media_streams --loss 2 --jitter-ms 40
find . -name recording.wav -o -name timeline.json | LC_ALL=C sort | xargs sha256sum
