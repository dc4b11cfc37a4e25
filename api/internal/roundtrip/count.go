package roundtrip

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"slices"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/wire"
)

// Count sends the request and returns the number of input tokens in its response: see [Tokens].
func (t Trip) Count(ctx context.Context) (n int64, err error) {
	for event, err := range t.Stream(ctx) {
		if err != nil {
			return 0, err
		}
		if f, ok := event.(api.Finish); ok {
			n = f.Usage.Input
		}
	}
	return n, nil
}

// CountOf is Count for an endpoint with a body of its own. The function body makes it from the request's.
func (t Trip) CountOf(ctx context.Context, body func(*wire.Parts) (content.JSON, error)) (int64, error) {
	prepare := t.Prepare
	t.Prepare = func() (Call, error) {
		c, err := prepare()
		if err != nil {
			return c, err
		}
		counted, err := body(c.Body)
		c.Body = wire.NewParts([]byte(counted))
		return c, err
	}
	return t.Count(ctx)
}

// Keeping returns body with only the named members. An endpoint for counting tokens refuses members about the response.
func Keeping(body *wire.Parts, names ...string) (content.JSON, error) {
	list, err := jsonx.Members(content.JSON(body.Bytes()))
	if err != nil {
		return "", err
	}
	return jsonx.Object(slices.DeleteFunc(list, func(m jsonx.Member) bool { return !slices.Contains(names, m.Name) })), nil
}

// Tokens yields the end of a response. Its usage is the number in the named member of res.
func Tokens(name, member string, res *http.Response) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		// A count is a few bytes. The limit is for a broken server.
		text, err := io.ReadAll(io.LimitReader(res.Body, wire.MaxError))
		if err != nil {
			yield(nil, err)
			return
		}

		var members map[string]json.RawMessage
		var n int64
		if err := json.Unmarshal(text, &members); err != nil {
			yield(nil, Protocol(name, "the count of tokens: %w", err))
			return
		}
		if err := json.Unmarshal(members[member], &n); err != nil || n < 0 {
			yield(nil, Protocol(name, "the count of tokens has no number %q", member))
			return
		}

		// Count takes the number from the usage of this end.
		yield(api.Finish{Stop: content.StopEndTurn, Usage: content.Usage{Input: n}}, nil)
	}
}
