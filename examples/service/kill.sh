#!/bin/sh
# Kills the service at random moments while clients send messages, and checks that every accepted message is answered
# once.
#
#	examples/service/kill.sh        # 100 kills
#	examples/service/kill.sh 1000
set -eu
cd "$(dirname "$0")"
PLAIT_KILLS=${1:-100} exec go test -count=1 -timeout 2h -v -run Killed .
