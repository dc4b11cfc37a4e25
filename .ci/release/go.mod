// A path below Plait's, so that the command can use its internal packages. It is never tagged.
module github.com/plait-dev/plait/release-check

go 1.26.0

require (
	github.com/plait-dev/plait v0.0.0
	golang.org/x/mod v0.42.0
)

require (
	github.com/goccy/go-json v0.12.0 // indirect
	github.com/google/jsonschema-go v0.4.3 // indirect
	golang.org/x/time v0.15.0 // indirect
)

replace github.com/plait-dev/plait => ../..
