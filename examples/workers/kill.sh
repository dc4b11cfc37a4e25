#!/bin/sh
# Runs a shop of services, runners and workers, kills them at random moments while customers order, and checks that
# nothing was lost or repeated.
#
#	examples/workers/kill.sh                     # 100 kills on a new SQLite database
#	examples/workers/kill.sh 1000 postgres       # on a PostgreSQL server of its own; initdb must be installed
#	examples/workers/kill.sh 1000 postgres ui    # with River's UI on http://localhost:8084, until Enter is pressed
set -eu
cd "$(dirname "$0")/../.."
kills=${1:-100} kind=${2:-sqlite} ui=${3:-}
folder=$(mktemp -d)
chmod 755 "$folder"
server='' page=''

finish() {
	[ -z "$page" ] || kill "$page"
	[ -z "$server" ] || as_owner "$bin/pg_ctl" -D "$folder/server" -m immediate -w stop >"$folder/stop.log"
	rm -rf "$folder"
}
trap finish EXIT
trap 'exit 1' INT TERM

# The server refuses to run as root.
as_owner() {
	if [ "$(id -u)" = 0 ]; then
		su postgres -s /bin/sh -c 'exec "$0" "$@"' -- "$@"
	else
		"$@"
	fi
}

go build -o "$folder/workers" ./examples/workers
[ -z "$ui" ] || go build -o "$folder/riverui" ./examples/riverui

database=$folder/shop.db
if [ "$kind" = postgres ]; then
	bin=$(dirname "$(command -v initdb || ls -d /usr/lib/postgresql/*/bin/initdb | tail -n 1)")
	mkdir "$folder/server"
	[ "$(id -u)" != 0 ] || chown postgres "$folder/server"
	as_owner "$bin/initdb" -D "$folder/server" -U postgres --auth=trust >"$folder/init.log"
	as_owner "$bin/pg_ctl" -D "$folder/server" -l "$folder/server/log" -w -t 60 -o "-h '' -k $folder/server" start >"$folder/start.log"
	server=yes
	database="postgres://postgres@/postgres?host=$folder/server&pool_max_conns=6"
fi

# The page needs the tables of River: one run makes them.
if [ -n "$ui" ]; then
	"$folder/workers" kill 0 "$database" >"$folder/first.log"
	"$folder/riverui" "$database" &
	page=$!
fi

"$folder/workers" kill "$kills" "$database"
if [ -n "$ui" ]; then
	printf 'Press Enter to end. '
	read -r _ || true
fi
