#!/usr/bin/env bash
# How many requests one CPU-second of the server answers, beside a reference that does the same with FastAPI and sqlite3
# (tests/reference), and how long answers take at 1,000 requests a second while calls run.
#
#   make speed        needs: a release build, wrk, python3 with venv
#
# The two take turns, ROUNDS times, so that both meet the machine as it is: its speed may change within a minute.
#
# SECONDS_EACH, ROUNDS, CONNECTIONS and CALLS change what is measured. wrk has no fixed rate: for the times of answers 55
# connections send a request each 50 ms after their last answer, which is 1,000 a second and a few more while answers take a few
# milliseconds.
set -euo pipefail
cd "$(dirname "$0")/.."

each=${SECONDS_EACH:-10}
rounds=${ROUNDS:-5}
calls=${CALLS:-200}
connections=${CONNECTIONS:-32}
ringer=${RINGER:-${CARGO_TARGET_DIR:-target}/release/ringer}
work=$(mktemp -d)
venv=${VENV:-${CARGO_TARGET_DIR:-target}/reference-venv}
key=key-of-the-speed-test
started=()

finish() {
    for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
    wait 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT

# User and system time of a process and of all its threads, in milliseconds.
cpu_ms() { awk -v tick="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); print int(($12 + $13) * 1000 / tick) }' "/proc/$1/stat"; }

wait_for() { # URL
    for _ in $(seq 300); do
        curl -s -o /dev/null "$1" && return
        sleep 0.1
    done
    echo "nobody answers at $1" >&2
    exit 1
}

cat >"$work/create.lua" <<'LUA'
wrk.method = "POST"
wrk.body = '{"name": "Desk", "system_prompt": "You book tables.", "goals": ["book"], "sip_uri": "sip:desk@127.0.0.1:5080"}'
wrk.headers["content-type"] = "application/json"
LUA

# Requests that process $1 answers, and the milliseconds of CPU that they take it: $2 is its address, the rest goes to wrk.
drive() {
    local pid=$1 url=$2; shift 2
    wrk -t1 -c"$connections" -d1s -H "x-api-key: $key" "$@" "$url" >/dev/null
    local before after
    before=$(cpu_ms "$pid")
    wrk -t1 -c"$connections" -d"$(((each + rounds - 1) / rounds))s" -H "x-api-key: $key" "$@" "$url" >"$work/wrk.txt"
    after=$(cpu_ms "$pid")
    if grep -q 'Non-2xx' "$work/wrk.txt"; then cat "$work/wrk.txt" >&2; exit 1; fi
    awk -v ms=$((after - before)) '/requests in/ { print $1, ms }' "$work/wrk.txt"
}

[ -x "$venv/bin/uvicorn" ] || { python3 -m venv "$venv" && "$venv/bin/pip" -q install -r tests/reference/requirements.txt; }

REFERENCE_KEY=$key REFERENCE_DATABASE="$work/reference.db" "$venv/bin/uvicorn" --app-dir tests/reference app:app \
    --no-access-log --log-level warning --port 18765 &
reference=$!
started+=("$reference")
RINGER_BOOTSTRAP_KEY=$key RINGER_LOG=warn "$ringer" up --listen 127.0.0.1:18766 --sip 127.0.0.1:0 --data "$work/data" >/dev/null &
server=$!
started+=("$server")
wait_for http://127.0.0.1:18765/docs
wait_for http://127.0.0.1:18766/v1/openapi.json

# What a server does when it starts is no request: it is over when half a second takes less than 20 ms of CPU.
for pid in "$reference" "$server"; do
    for _ in $(seq 120); do
        before=$(cpu_ms "$pid")
        sleep 0.5
        [ $(($(cpu_ms "$pid") - before)) -ge 20 ] || break
    done
done

create=(-s "$work/create.lua")
for port in 18765 18766; do
    curl -sf -o /dev/null -H "x-api-key: $key" -H 'content-type: application/json' \
        -d '{"name": "Desk", "system_prompt": "You book tables.", "goals": ["book"]}' "http://127.0.0.1:$port/v1/add-agent"
done

printf '%-16s %12s %12s %8s   requests a CPU-second of the server\n' '' reference ringer times
row() { # name path wrk-options
    local name=$1 path=$2; shift 2
    for _ in $(seq "$rounds"); do
        drive "$reference" "http://127.0.0.1:18765$path" "$@"
        drive "$server" "http://127.0.0.1:18766$path" "$@"
    done | paste - - | awk -v n="$name" '{ t += $1; tms += $2; o += $3; oms += $4 }
        END { t *= 1000 / tms; o *= 1000 / oms; printf "%-16s %12d %12d %8.1f\n", n, t, o, o / t }'
}
row 'GET by id' /v1/agents/1
row 'POST create' /v1/add-agent "${create[@]}"

printf 'delay_ms = 50\nfunction delay() return delay_ms end\n' >"$work/paced.lua"
cat "$work/create.lua" "$work/paced.lua" >"$work/paced_create.lua"

# Rate and times of paced answers: $1 names them, $2 is the path, $3 the script.
paced() {
    wrk -t1 -c55 -d"${each}s" -H "x-api-key: $key" --latency -s "$work/$3" "http://127.0.0.1:18766$2" >"$work/wrk.txt"
    if grep -q 'Non-2xx' "$work/wrk.txt"; then cat "$work/wrk.txt" >&2; exit 1; fi
    awk -v n="$1" '/ 50%/ { half = $2 } / 99%/ { most = $2 } /Requests\/sec/ { rate = $2 }
        END { printf "%-16s %12.0f %12s %12s\n", n, rate, half, most }' "$work/wrk.txt"
}
printf '\n%-16s %12s %12s %12s   with %s calls\n' '' 'a second' median p99 "$calls"
if [ "$calls" -gt 0 ]; then
    "$ringer" load --calls "$calls" --seconds $((3 * each)) --data "$work/load" >"$work/load.txt" 2>&1 &
    load=$!
    started+=("$load")
    sleep $((calls / 50 + 6))
fi
paced 'GET by id' /v1/agents/1 paced.lua
paced 'POST create' /v1/add-agent paced_create.lua
if [ "$calls" -gt 0 ]; then
    wait "$load" || true
    printf '\n'
    cat "$work/load.txt"
fi
