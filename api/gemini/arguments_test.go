package gemini

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
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
		events, err := d.take([]byte(`{"candidates":[{"content":{"parts":[` + part + `]}` + end + `}]}`))
		for _, e := range events {
			if err := f.Add(e); err != nil {
				return api.Response{}, err
			}
		}
		if err != nil {
			return f.Partial(), err
		}
	}
	events, err := d.end()
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

func TestArgumentsInPiecesAreAssembled(t *testing.T) {
	answer, err := foldParts("STOP",
		`{"text":"Let me see."}`,
		`{"functionCall":{"name":"book","id":"c1","willContinue":true},"thoughtSignature":"c2ln"}`,
		`{"functionCall":{"partialArgs":[{"jsonPath":"$.place.name","stringValue":"New ","willContinue":true}],"willContinue":true}}`,
		`{"functionCall":{"partialArgs":[{"jsonPath":"$.place.name","stringValue":"York \"NY\""},{"jsonPath":"$.nights","numberValue":2}],"willContinue":true}}`,
		`{"functionCall":{"partialArgs":[{"jsonPath":"$['a b'][0].x","boolValue":true},{"jsonPath":"$['a b'][0]['it\\'s']","nullValue":"NULL_VALUE"},{"jsonPath":"$[\"a b\"][1]","stringValue":""}],"willContinue":true}}`,
		`{"functionCall":{}}`,
		`{"functionCall":{"name":"now","args":{}}}`,
		`{"functionCall":{"name":"late","partialArgs":[{"jsonPath":"$.q","stringValue":"x"}]}}`,
		`{"functionCall":{"name":"none","willContinue":true}}`, `{"functionCall":{}}`,
	)
	require.NoError(t, err)
	require.Equal(t, []content.Block{
		content.Text{Text: "Let me see."},
		content.ToolUse{ID: "c1", Name: "book", Input: `{"place":{"name":"New York \"NY\""},"nights":2,"a b":[{"x":true,"it's":null},""]}`,
			Extra: content.Extra{API: API, JSON: `{"thoughtSignature":"c2ln"}`}},
		content.ToolUse{Name: "now", Input: "{}"},
		content.ToolUse{Name: "late", Input: `{"q":"x"}`},
		content.ToolUse{Name: "none", Input: "{}"},
	}, answer.Blocks.Slice())
	require.Equal(t, content.StopToolUse, answer.Stop)
}

func TestACallInPiecesIsNeverExecutedBeforeItsEnd(t *testing.T) {
	begin := `{"functionCall":{"name":"book","willContinue":true}}`
	piece := `{"functionCall":{"partialArgs":[{"jsonPath":"$.name","stringValue":"New","willContinue":true}],"willContinue":true}}`

	cut, err := foldParts("MAX_TOKENS", begin, piece)
	require.NoError(t, err)
	call := cut.Blocks.At(0).(content.ToolUse)
	require.Equal(t, content.JSON(`{"name":"New"`), call.Input)
	require.False(t, call.Input.Valid())

	for name, parts := range map[string][]string{
		"no end":             {begin, piece},
		"text in between":    {begin, `{"text":"x"}`, `{"functionCall":{}}`},
		"no name":            {`{"functionCall":{"willContinue":true}}`},
		"no path":            {begin, `{"functionCall":{"partialArgs":[{"stringValue":"x"}]}}`},
		"the whole as path":  {begin, `{"functionCall":{"partialArgs":[{"jsonPath":"$","stringValue":"x"}]}}`},
		"a hole in a list":   {begin, `{"functionCall":{"partialArgs":[{"jsonPath":"$.a[1]","stringValue":"x"}]}}`},
		"a wild card":        {begin, `{"functionCall":{"partialArgs":[{"jsonPath":"$.a[*]","stringValue":"x"}]}}`},
		"an open bracket":    {begin, `{"functionCall":{"partialArgs":[{"jsonPath":"$['a","stringValue":"x"}]}}`},
		"descendants":        {begin, `{"functionCall":{"partialArgs":[{"jsonPath":"$..a","stringValue":"x"}]}}`},
		"a very long path":   {begin, `{"functionCall":{"partialArgs":[{"jsonPath":"$` + strings.Repeat(".a", 101) + `","stringValue":"x"}]}}`},
		"pieces of no list":  {begin, `{"functionCall":{"partialArgs":7}}`},
		"a piece, no object": {begin, `{"functionCall":{"partialArgs":[7]}}`},
	} {
		part, err := foldParts("STOP", parts...)
		require.ErrorIs(t, err, api.ErrProtocol, name)
		require.Empty(t, part.Blocks.ToolUses(), name)
	}
}
