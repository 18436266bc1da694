# The engine in a container: `docker build -t ringer .`. Models of speech are no part of it: they are mounted at
# /models.

FROM rust:1.95-slim-bookworm AS build
WORKDIR /src
# The sources of SQLite and of ring are C; Python collects the licences.
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev python3 && rm -rf /var/lib/apt/lists/*
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/src/target \
    cargo build --profile dist --locked --bin ringer && strip -o /ringer target/dist/ringer \
    && python3 packaging/bill.py >/THIRD-PARTY-LICENSES.txt

FROM debian:bookworm-slim
# The versions are those of the stable Debian, whose repairs a pinned version would keep out.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends flite espeak-ng libpocketsphinx3 pocketsphinx-en-us libopus0 \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/*-old /var/log/apt /var/log/dpkg.log
RUN groupadd --system --gid 10001 ringer \
    && useradd --system --uid 10001 --gid 10001 --home-dir /data --no-create-home --shell /usr/sbin/nologin ringer \
    && install -d -o 10001 -g 10001 -m 0700 /data \
    && install -d -m 0755 /models
COPY --from=build /ringer /usr/bin/ringer
COPY --from=build /THIRD-PARTY-LICENSES.txt /usr/share/doc/ringer/
COPY LICENSE LICENSE-APACHE LICENSE-MIT /usr/share/doc/ringer/
ENV RINGER_DATA=/data RINGER_SPEECH_MODELS=/models RINGER_SERVER_LISTEN=0.0.0.0:8080 RINGER_SIP_LISTEN=0.0.0.0:5060 HOME=/data
USER 10001:10001
WORKDIR /data
VOLUME ["/data", "/models"]
EXPOSE 8080/tcp 5060/udp
STOPSIGNAL SIGTERM
# Bash opens the connection: nothing is installed for it.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["/bin/bash", "-c", \
    "exec 3<>/dev/tcp/127.0.0.1/${RINGER_SERVER_LISTEN##*:} && printf 'GET /health HTTP/1.0\\r\\n\\r\\n' >&3 && read -r _ code _ <&3 && [ \"$code\" = 200 ]"]
ENTRYPOINT ["/usr/bin/ringer"]
CMD ["up", "--no-page-link"]
