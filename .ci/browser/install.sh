#!/bin/sh
# Installs the missing programs of the browser checks: Chromium, Firefox, fonts for all scripts, and the pinned node
# packages of the named checks (mermaid, page), or of both. Quiet and repeatable. Installing browsers needs root and
# apt-get; CHROMIUM and FIREFOX may name installed ones instead.
set -eu
cd "$(dirname "$0")"
[ $# -gt 0 ] || set -- mermaid page

missing=
[ -x "${CHROMIUM:-/usr/bin/chromium}" ] || missing="chromium"
[ -e /usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc ] || missing="$missing fonts-noto-cjk"
[ -e /usr/share/fonts/truetype/noto/NotoColorEmoji.ttf ] || missing="$missing fonts-noto-color-emoji"
[ -e /usr/share/fonts/truetype/noto/NotoSansDevanagari-Regular.ttf ] || missing="$missing fonts-noto-core"
[ -x "${FIREFOX:-/usr/bin/firefox-esr}" ] || missing="$missing firefox-esr"
if [ -n "$missing" ]; then
	log="$(mktemp)"
	{ apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing; } >"$log" 2>&1 ||
		{ cat "$log" >&2; exit 1; }
	rm -f "$log"
fi

for check in "$@"; do
	# npm ci would download everything again; the copy of the lock file records what is installed.
	(cd "$check" && { cmp -s package-lock.json node_modules/.installed || {
		npm ci --no-audit --no-fund --loglevel=error >/dev/null
		cp package-lock.json node_modules/.installed
	}; })
done
