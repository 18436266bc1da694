#!/usr/bin/env bash
# Builds the protocol's own room server with Go, runs it on loopback and runs a command beside it, with the server's address in
# RINGER_ROOM_SERVER. Without Go it fails: nothing else brings the server.
# Usage: room_server.sh FOLDER VERSION COMMAND [ARGUMENT ...]
set -euo pipefail

folder=$1 version=$2
shift 2
least=1.26

complain() { echo "make rooms: $*" >&2; exit 1; }

command -v go >/dev/null \
    || complain "Go is not installed. The room server is a Go program that no package brings: install Go $least or newer (https://go.dev/dl)"
found=$(go env GOVERSION)
found=${found#go}
[ "$(printf '%s\n' "$least" "$found" | sort -V | head -n 1)" = "$least" ] || complain "Go $found is too old: $least or newer is needed"

# A copy of the server's own module: what it replaces has no effect in a module that only requires it.
module=github.com/livekit/livekit-server
mkdir -p "$folder"
server="$folder/livekit-server-$version"
if [ ! -x "$server" ]; then
    echo "Building the room server $version with Go $found"
    (
        source=$(cd "$folder" && go mod download -json "$module@$version" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p') && [ -n "$source" ]
        rm -rf "$folder/build"
        cp -r "$source" "$folder/build"
        chmod -R u+w "$folder/build"
        cd "$folder/build"
        go build -o "$server" ./cmd/server
        rm -rf "$folder/build"
    ) || complain "the room server $version could not be built: see above (it comes from the module proxy of Go)"
fi

# The key is that of the tests. Official clients leave loopback out, so that media may also go by another address of this machine.
port=$((20000 + RANDOM % 10000))
cat >"$folder/config.yaml" <<YAML
port: $port
bind_addresses: ["127.0.0.1"]
rtc:
  tcp_port: $((port + 1))
  udp_port: $((port + 2))
  use_external_ip: false
  enable_loopback_candidate: true
  # Clients are told of it in place of servers on the internet; nobody answers there.
  stun_servers: ["127.0.0.1:9"]
keys:
  testkey: "a secret of the tests, which is longer than thirty-two bytes"
logging:
  level: warn
YAML
"$server" --config "$folder/config.yaml" >"$folder/server.log" 2>&1 &
process=$!
trap 'kill "$process" 2>/dev/null || true; wait "$process" 2>/dev/null || true' EXIT
for _ in $(seq 100); do
    kill -0 "$process" 2>/dev/null || complain "the room server ended: see $folder/server.log"
    if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
        RINGER_ROOM_SERVER="ws://127.0.0.1:$port" "$@"
        exit
    fi
    sleep 0.1
done
complain "the room server does not answer at port $port: see $folder/server.log"
