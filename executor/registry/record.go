package registry

import (
	"fmt"
	"time"

	"github.com/goccy/go-json/jsontext"
	json "github.com/goccy/go-json/v2"

	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
)

// Record is what one call of a [Registry] came to.
type Record struct {
	// Tool is the tool's name as it was called; empty where the call named none.
	Tool string
	// Success reports whether the tool was called and did not fail.
	Success bool
	// Output is the tool's result as text, however long it is; empty on failure. Blocks stand one below the other: a
	// text, or a document that is plain text, as it is, any other block as what it is: "[image image/png]", "[document
	// application/pdf]".
	Output string
	// Error says why the call failed, for a model to read; empty on success and never else.
	Error string
	// Latency is how long the tool ran, until its result or its timeout; 0 where it was not called.
	Latency time.Duration
}

// maxLogged is how many characters of a text the JSON of a Record holds.
const maxLogged = 2000

// MarshalJSON returns the record for logs: an object with tool_name, success, output, latency_ms and, on failure,
// error. Each text is cut after 2000 characters, so it cannot be read back into the same Record.
func (r Record) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Tool    string  `json:"tool_name"`
		Success bool    `json:"success"`
		Output  string  `json:"output"`
		Latency float64 `json:"latency_ms"`
		Error   string  `json:"error,omitempty"`
	}{
		firstRunes(r.Tool, maxLogged), r.Success, firstRunes(r.Output, maxLogged),
		float64(r.Latency) / float64(time.Millisecond), firstRunes(r.Error, maxLogged),
	}, jsontext.AllowInvalidUTF8(true))
}

// firstRunes is the first n characters of text.
func firstRunes(text string, n int) string {
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}

// recordOf is the record of a call that was executed, or refused on the way.
func recordOf(tool string, done node.ToolExecution) Record {
	text, took := describe.Text(done.Result), done.Ended.Sub(done.Started)
	if !done.IsError {
		return Record{Tool: tool, Success: true, Output: text, Latency: took}
	}
	if text == "" {
		text = fmt.Sprintf("Tool %s failed without saying why.", safetext.Quote(tool, mostName))
	}
	return Record{Tool: tool, Error: text, Latency: took}
}

// failedRecord is the record of a call that came to nothing.
func failedRecord(tool, reason string) Record { return Record{Tool: tool, Error: reason} }
