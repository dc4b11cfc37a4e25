// A path below Plait's, so that the command can use its internal packages. It is never tagged.
module github.com/plait-dev/plait/release-check

go 1.26.0

require (
	github.com/plait-dev/plait v0.0.0
	golang.org/x/mod v0.42.0
)

replace github.com/plait-dev/plait => ../..
