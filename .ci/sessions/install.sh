#!/bin/sh
# Installs the pinned Codex and pi for the tests of dag/sessions, if they are missing: 700 MB. With "long", Claude Code
# and OpenCode as well, 750 MB more. Quiet and repeatable.
set -eu
cd "$(dirname "$0")"
[ "${1:-}" = long ] && folders=". long" || folders=.

for folder in $folders; do (
	cd "$folder"
	# npm ci would download everything again; the copy of the lock file records what is installed.
	cmp -s package-lock.json node_modules/.installed || {
		npm ci --no-audit --no-fund --loglevel=error >/dev/null
		cp package-lock.json node_modules/.installed
	}
) done
