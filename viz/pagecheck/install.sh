#!/bin/sh
# Installs what check.mjs needs, as viz/mermaidcheck/install.sh does.
exec "$(dirname "$0")/../mermaidcheck/install.sh" "$(dirname "$0")"
