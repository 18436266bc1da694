#!/usr/bin/env bash
# Makes a Debian 12 without anything in a folder, once: `root.sh FOLDER`. Packages are installed into copies of it.
set -euo pipefail

root=$1 suite=bookworm
[ ! -e "$root.complete" ] || exit 0
command -v debootstrap >/dev/null || { echo 'root.sh: debootstrap is not installed' >&2; exit 1; }
as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo)
mkdir -p "$(dirname "$root")"
"${as_root[@]}" rm -rf -- "${root:?}"
"${as_root[@]}" debootstrap --variant=minbase "$suite" "$root" >"$root.log" 2>&1 \
    || { tail -n 5 "$root.log" >&2; echo "root.sh: debootstrap failed: see $root.log" >&2; exit 1; }
# What is only read by people takes a third of it.
"${as_root[@]}" rm -rf "$root"/usr/share/{doc,man,info,locale} "$root"/var/cache/apt/archives/*.deb
# Nothing in it starts a service or asks a question.
printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$root/usr/sbin/policy-rc.d" >/dev/null
"${as_root[@]}" chmod 755 "$root/usr/sbin/policy-rc.d"
touch "$root.complete"
