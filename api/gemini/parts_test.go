package gemini

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/content"
)

func TestPartsOfAWholeAnswerStayApart(t *testing.T) {
	const parts = `[{"text":"a","thought":true},{"text":"b","thought":true},{"text":"c"},{"text":"d"},{"text":"","thoughtSignature":"c2ln"}]`
	answer, err := foldWhole(`{"candidates":[{"content":{"parts":` + parts + `},"finishReason":"STOP"}]}`)
	require.NoError(t, err)
	require.Equal(t, 4, answer.Blocks.Len(), "%v", answer.Blocks)
	require.Equal(t, "c\nd", answer.Blocks.Text())
	require.Equal(t, "a", answer.Blocks.At(0).(content.Thinking).Text)
	require.NotEmpty(t, answer.Blocks.At(3).(content.Text).Extra.For(API), "a signature goes to the text before it")

	// A list of chunks is a stream that came at once: its parts are pieces.
	answer, err = foldWhole(`[{"candidates":[{"content":{"parts":[{"text":"c"}]}}]},{"candidates":[{"content":{"parts":[{"text":"d"}]},"finishReason":"STOP"}]}]`)
	require.NoError(t, err)
	require.Equal(t, 1, answer.Blocks.Len())
}

func TestEmptyUserMessageIsSentBesideTheSystemInstruction(t *testing.T) {
	const system = `"systemInstruction":{"parts":[{"text":"Tell a joke."}]}`
	for name, contents := range map[string]string{
		"an empty text":   `[{"role":"user","parts":[{"text":""}]}]`,
		"a space":         `[{"role":"user","parts":[{"text":" "}]}]`,
		"with more turns": `[{"role":"user","parts":[{"text":""}]},{"role":"model","parts":[{"text":"x"}]},{"role":"user","parts":[{"text":"y"}]}]`,
	} {
		body := []byte("{" + system + `,"contents":` + contents + "}")
		req, err := Import(body)
		require.NoError(t, err, name)
		again, notes, err := Body(req, "gemini-2.5-flash", nil)
		require.NoError(t, err, name)
		require.Empty(t, notes, name)
		require.Contains(t, string(again), `"contents":`+contents, name)
		require.NoError(t, fake.CheckGemini("gemini-2.5-flash", again), name)
	}

	_, _, err := Body(api.Request{System: []string{"x"}}, "gemini-2.5-flash", nil)
	require.ErrorIs(t, err, api.ErrNothing)
}

func TestTextFilesOfOtherTypesAreSentAsText(t *testing.T) {
	file := content.Document{Source: content.Source{MediaType: "text/x-go", Data: "cGFja2FnZSB4Cg=="}}
	body, _ := requireBody(t, ask3(user(file)), "gemini-2.5-flash", nil)
	require.Contains(t, body, `{"text":"package x\n"}`)
}
