package gemini

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
)

// foldParts returns the response of a stream with one part in each event.
func foldParts(reason string, parts ...string) (api.Response, error) {
	d := decoder{header: http.Header{}}
	var f api.Fold
	for i, part := range parts {
		end := ""
		if i == len(parts)-1 {
			end = `,"finishReason":"` + reason + `"`
		}
		events, err := d.Take([]byte(`{"candidates":[{"content":{"parts":[` + part + `]}` + end + `}]}`))
		for _, e := range events {
			if err := f.Add(e); err != nil {
				return api.Response{}, err
			}
		}
		if err != nil {
			return f.Partial(), err
		}
	}
	events, err := d.End(nil)
	for _, e := range events {
		if err := f.Add(e); err != nil {
			return api.Response{}, err
		}
	}
	if err != nil {
		return f.Partial(), err
	}
	return f.Response()
}

func TestACallInPiecesIsNeverExecuted(t *testing.T) {
	begin := `{"functionCall":{"name":"book","willContinue":true}}`
	piece := `{"functionCall":{"partialArgs":[{"jsonPath":"$.name","stringValue":"New","willContinue":true}],"willContinue":true}}`
	for name, parts := range map[string][]string{
		"all of it":         {begin, piece, `{"functionCall":{}}`},
		"no end":            {begin, piece},
		"a call in one":     {`{"functionCall":{"name":"book","partialArgs":[{"jsonPath":"$.q","stringValue":"x"}]}}`},
		"after a text":      {`{"text":"Let me see."}`, begin},
		"no beginning":      {piece},
		"pieces of no list": {`{"functionCall":{"name":"book","partialArgs":7}}`},
	} {
		for _, reason := range []string{"STOP", "MAX_TOKENS"} {
			part, err := foldParts(reason, parts...)
			require.ErrorIs(t, err, api.ErrProtocol, name)
			require.ErrorContains(t, err, "streamFunctionCallArguments")
			require.Empty(t, part.Blocks.ToolUses(), name)
		}
	}
}
