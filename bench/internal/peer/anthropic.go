package peer

import (
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Anthropic is a transport with responses like those of the Messages API, at once and without a network: a fake model
// for libraries that send requests.
type Anthropic struct{ Loop *Loop }

// RoundTrip reads the request and returns the next response of the loop.
func (a Anthropic) RoundTrip(r *http.Request) (*http.Response, error) {
	// A network would read the whole body too.
	if r.Body != nil {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return nil, err
		}
		r.Body.Close()
	}

	blocks, stop := `{"type":"text","text":"Done."}`, "end_turn"
	if a.Loop.Next() {
		calls := make([]string, a.Loop.Tools)
		for i := range calls {
			calls[i] = fmt.Sprintf(`{"type":"tool_use","id":"toolu_%d","name":"instant","input":{}}`, i)
		}
		blocks, stop = strings.Join(calls, ","), "tool_use"
	}
	body := fmt.Sprintf(`{"id":"m","type":"message","role":"assistant","model":"claude-x","content":[%s],"stop_reason":%q,`+
		`"usage":{"input_tokens":1,"output_tokens":1}}`, blocks, stop)
	return &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
		ContentLength: int64(len(body)),
	}, nil
}
