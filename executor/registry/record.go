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

// Record is the outcome of one call of a [Registry].
type Record struct {
	// Tool is the tool's name in the call; empty if the call has none.
	Tool string
	// Success reports whether the tool was called and did not fail.
	Success bool
	// Output is the tool's result as text, of any length; empty on failure. Each block begins on a line of its own. A
	// text and a plain-text document are included unchanged. Any other block is shown as its type: "[image image/png]",
	// "[document application/pdf]".
	Output string
	// Error is the reason for a failure, in a form suitable for a model. Empty on success, and never otherwise.
	Error string
	// Latency is the time the tool ran, until its result or its timeout; 0 if it was not called.
	Latency time.Duration
}

// maxLogged is the limit on the characters of each text in the JSON of a Record.
const maxLogged = 2000

// MarshalJSON returns the record for logs: an object with tool_name, success, output, latency_ms and, on failure,
// error. Each text is cut after 2,000 characters, so the JSON cannot be converted back to the same Record.
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

// firstRunes returns the first n characters of text.
func firstRunes(text string, n int) string {
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}

// recordOf returns the record of a call that was executed, or refused by the executor.
func recordOf(tool string, done node.ToolExecution) Record {
	text, took := describe.Text(done.Result), done.Ended.Sub(done.Started)
	if !done.IsError {
		return Record{Tool: tool, Success: true, Output: text, Latency: took}
	}

	// Error must not be empty on failure.
	if text == "" {
		text = fmt.Sprintf("Tool %s failed without saying why.", safetext.Quote(tool, maxName))
	}
	return Record{Tool: tool, Error: text, Latency: took}
}

// failedRecord returns the record of a call that was not executed.
func failedRecord(tool, reason string) Record { return Record{Tool: tool, Error: reason} }
