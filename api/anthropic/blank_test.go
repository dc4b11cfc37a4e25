package anthropic

import (
	"testing"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/stretchr/testify/require"
)

func TestBlankTextOfTheAssistantIsLeftOut(t *testing.T) {
	thought := content.Thinking{Text: "t", Signature: "c2ln", Extra: content.Extra{API: API, JSON: "{}"}}
	call := content.ToolUse{ID: "a", Name: "f", Input: "{}"}
	for name, test := range map[string]struct {
		said []content.Block
		kept int
	}{
		"beside a call":    {[]content.Block{content.Text{Text: "\n"}, call}, 1},
		"no-break space":   {[]content.Block{content.Text{Text: "\u00a0"}, content.Text{Text: "x"}, call}, 2},
		"wide space":       {[]content.Block{content.Text{Text: "x"}, content.Text{Text: "\u3000"}, call}, 2},
		"beside thinking":  {[]content.Block{thought, content.Text{Text: "\n\n"}, call}, 3},
		"nothing is blank": {[]content.Block{content.Text{Text: "x"}, call}, 2},
	} {
		blocks, err := content.Of(test.said...)
		require.NoError(t, err)
		req := api.Request{Messages: []content.Message{
			{Role: content.User, Blocks: content.Words("Hi")}, {Role: content.Assistant, Blocks: blocks},
			turnOf(content.User, []content.Block{result("a")}),
		}}
		body, notes, err := Body(req, "m", nil)
		require.NoError(t, err)
		sent, _, err := Import(body)
		require.NoError(t, err)
		require.Equal(t, test.kept, sent.Messages[1].Blocks.Len(), name)
		require.Len(t, notes, len(test.said)-test.kept, name)
	}
}

func TestCitationsOfTheBeginningAndOfDeltasAreKept(t *testing.T) {
	const begin, end = "data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\"}}\n\n", "data: {\"type\":\"message_stop\"}\n\n"
	citation := func(n string) string { return `{"type":"char_location","cited_text":"` + n + `"}` }
	for held, want := range map[string]string{
		`[` + citation("1") + `]`:                       citation("1") + "," + citation("2"),
		`[` + citation("1") + "," + citation("0") + `]`: citation("1") + "," + citation("0") + "," + citation("2"),
		`[]`:   citation("2"),
		`null`: citation("2"),
	} {
		answer, err := fold(begin + `data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"x","citations":` + held + "}}\n\n" +
			`data: {"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":` + citation("2") + "}}\n\n" +
			`data: {"type":"content_block_stop","index":0}` + "\n\n" + end)
		require.NoError(t, err)
		require.Equal(t, content.JSON(`{"citations":[`+want+`]}`), answer.Blocks.At(0).(content.Text).Extra.For(API))
	}
}
