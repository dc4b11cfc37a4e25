#!/bin/sh
# Installs what check.mjs needs, where it is missing: Chromium and the pinned node package. Quiet and repeatable. Installing Chromium
# needs root and apt-get; CHROMIUM may name a browser that is there already.
set -eu
cd "$(dirname "$0")"

chromium="${CHROMIUM:-/usr/bin/chromium}"
if ! [ -x "$chromium" ]; then
	log="$(mktemp)"
	{ apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
		chromium fonts-noto-cjk fonts-noto-color-emoji; } >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
	rm -f "$log"
fi

# npm ci would download everything again; the lock file it left behind says what is installed.
if ! cmp -s package-lock.json node_modules/.installed; then
	npm ci --no-audit --no-fund --loglevel=error >/dev/null
	cp package-lock.json node_modules/.installed
fi
