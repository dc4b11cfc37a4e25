#!/bin/sh
# Installs what the check.mjs in a folder needs, this one or the one that is named, where it is missing: Chromium, fonts for all scripts,
# and the pinned node packages. Quiet and repeatable. Installing Chromium needs root and apt-get; CHROMIUM may name a browser that is there
# already.
set -eu
cd "${1:-$(dirname "$0")}"

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
