#!/bin/sh
# Installs the pinned Claude Code, Codex, OpenCode and pi for the tests of dag/sessions, if they are missing: 1.1 GB.
# Quiet and repeatable.
set -eu
cd "$(dirname "$0")"

# npm ci would download everything again; the copy of the lock file records what is installed.
cmp -s package-lock.json node_modules/.installed || {
	npm ci --no-audit --no-fund --loglevel=error >/dev/null
	cp package-lock.json node_modules/.installed
}
