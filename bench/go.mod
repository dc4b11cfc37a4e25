module github.com/plait-dev/plait/bench

go 1.26.0

require (
	github.com/anthropics/anthropic-sdk-go v1.84.0
	github.com/goccy/go-json v0.12.0
	github.com/google/uuid v1.6.0
	github.com/openai/openai-go/v3 v3.95.0
	github.com/plait-dev/plait v0.1.0
	github.com/plait-dev/plait/api/anthropic v0.1.0
	github.com/plait-dev/plait/api/gemini v0.1.0
	github.com/plait-dev/plait/api/openai v0.1.0
	github.com/stretchr/testify v1.12.1
	golang.org/x/sync v0.23.0
	gonum.org/v1/gonum v0.17.0
	google.golang.org/genai v1.77.0
	modernc.org/sqlite v1.60.1
)
