module github.com/plait-dev/plait/examples

go 1.25.0

require (
	github.com/plait-dev/plait v0.0.0
	github.com/plait-dev/plait/api/anthropic v0.0.0
)

replace (
	github.com/plait-dev/plait => ..
	github.com/plait-dev/plait/api/anthropic => ../api/anthropic
)
