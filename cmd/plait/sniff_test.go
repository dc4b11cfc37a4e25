package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/testkit/providertest"
)

// formatSamples are one small file of each format, and of what looks like one.
var formatSamples = map[string]string{
	"anthropic":        `{"model":"claude-test","max_tokens":9,"system":"Be brief.","messages":[{"role":"user","content":"Hi"}]}`,
	"openai-chat":      `{"model":"gpt-4.1","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Hi"}]}`,
	"openai-responses": `{"model":"gpt-5","input":"Hi"}`,
	"gemini":           `{"contents":[{"role":"user","parts":[{"text":"Hi"}]}]}`,
	"chat":             `[{"role":"user","content":"Hi"},{"role":"assistant","content":"Hello."}]`,
	"claude-code":      `{"type":"summary","summary":"Greetings","leafUuid":"x"}` + "\n" + `{"type":"user","uuid":"u","parentUuid":null,"message":{"role":"user","content":"Hi"}}`,
	"nano-agent":       `{"session_id":"s","head_ids":["a"],"nodes":{"a":{"id":"a","parent_ids":[],"data":{"role":"user","content":"Hi"}}}}`,
	"pi":               `{"type":"session","version":3,"id":"s","cwd":"/"}` + "\n" + `{"type":"message","id":"m","parentId":null,"message":{"role":"user","content":"Hi"}}`,
}

func TestImportRecognizesEachFormat(t *testing.T) {
	for _, name := range importerNames() {
		out, errs, code := command(formatSamples[name], "import", "-")
		require.Equal(t, exitDone, code, "%s: %s", name, errs)
		require.Contains(t, out, `"Hi"`, name)
	}
}

func TestImportRefusesAnotherFormatByName(t *testing.T) {
	type file struct{ is, text string }
	var files []file
	for is, text := range formatSamples {
		files = append(files, file{is, text})
	}

	// Requests of which nothing but a tool shows whose they are.
	request := func(tool string) string {
		return `{"model":"m","max_tokens":9,"tools":[` + tool + `],"messages":[{"role":"user","content":"Hi"}]}`
	}
	files = append(files,
		file{"anthropic", request(`{"name":"f","input_schema":{"type":"object"}}`)},
		file{"openai-chat", request(`{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}`)},
	)

	alike := map[string][]string{ // formats that hold each other's files
		"openai-chat": {"chat"},
		"chat":        {"openai-chat"},
	}
	for _, from := range importerNames() {
		for _, f := range files {
			if from == f.is || slices.Contains(alike[f.is], from) {
				continue
			}
			out, errs, code := command(f.text, "import", "--from", from, "-")
			require.Equal(t, exitBad, code, "%s as %s: %s", f.is, from, f.text)
			require.Equal(t, fmt.Sprintf("plait: -: it is not %s: it looks like %s\n", from, f.is), errs)
			require.Empty(t, out)
		}
	}
}

func TestImportRefusesResponses(t *testing.T) {
	for text, want := range map[string]string{
		`{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn"}`: "a response of anthropic",
		`{"id":"c","object":"chat.completion","choices":[{"message":{"role":"assistant","content":"Hi"}}]}`:                               "a response of openai-chat",
		`{"id":"resp_1","object":"response","status":"completed","output":[]}`:                                                            "a response of openai-responses",
		`{"candidates":[{"content":{"role":"model","parts":[{"text":"Hi"}]}}]}`:                                                           "a response of gemini",
		`[{"candidates":[{"content":{"role":"model","parts":[{"text":"Hi"}]}}]}]`:                                                         "a response of gemini",
		`{"type":"error","error":{"type":"overloaded_error","message":"no"}}`:                                                             "an error response",
		"event: message_start\ndata: {}\n\n":                                                                                              "a streamed response",
		"data: {\"choices\":[]}\n\ndata: [DONE]\n\n":                                                                                      "a streamed response",
		`{"format":"plait","version":1}`:                                                                                                  "a conversation that Plait saved",
		"{\"format\":\"plait-journal\"}\n{\"heads\":[]}\n":                                                                                "a conversation that Plait saved",
		`[{"role":"user","parts":[{"text":"Hi"}]}]`:                                                                                       "the contents of a Gemini request",
	} {
		_, errs, code := command(text, "import", "-")
		require.Equal(t, exitBad, code, text)
		require.Contains(t, errs, "it looks like "+want)
		require.Contains(t, errs, "claude-code", "the known formats are named")
		for _, from := range importerNames() {
			_, errs, code := command(text, "import", "--from", from, "-")
			require.Equal(t, exitBad, code, "%s: %s", from, text)
			require.Contains(t, errs, "it is not "+from+": it looks like "+want)
		}
	}
}

func TestImportAsksForTheFormatWhereNothingDecides(t *testing.T) {
	text := `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Hi"}]}`
	_, errs, code := command(text, "import", "-")
	require.Equal(t, exitBad, code)
	require.Equal(t, "plait: -: it may be anthropic or openai-chat or chat: name its format with --from\n", errs)
	for _, from := range []string{"anthropic", "openai-chat", "chat"} {
		_, errs, code := command(text, "import", "--from", from, "-")
		require.Equal(t, exitDone, code, errs)
	}
	for _, text := range []string{`{}`, `7`, `[]`, "hello", `{"a":1}`} {
		_, errs, code := command(text, "import", "-")
		require.Equal(t, exitBad, code)
		require.Contains(t, errs, "its format is not recognized: name it with --from: anthropic, openai-chat", text)
	}
	for text, reason := range map[string]string{
		"": "it is empty", "\n": "it is empty", `[{"role":"user","content":"hi`: "it is JSON that is cut off",
	} {
		_, errs, code := command(text, "import", "-")
		require.Equal(t, exitBad, code)
		require.Equal(t, "plait: -: "+reason+"\n", errs)
	}
}

func TestImportOfNothingIsAnError(t *testing.T) {
	for _, from := range []string{"anthropic", "openai-chat", "openai-responses", "gemini"} {
		_, errs, code := command(`{"a":1}`, "import", "--from", from, "-")
		require.Equal(t, exitBad, code, from)
		require.Contains(t, errs, "it has no content in the format "+from+"; import accepts anthropic, ")
	}
}

// TestEveryRecordedRequestLooksLikeItsFormat: no recorded request is refused with its own format, or taken with another API's unless
// nothing tells them apart; and no recorded response is taken.
func TestEveryRecordedRequestLooksLikeItsFormat(t *testing.T) {
	for _, a := range recordedAPIs {
		t.Run(a.format, func(t *testing.T) {
			sure, unsure := 0, 0
			for _, c := range providertest.Cassettes(t, a.folder, a.name) {
				for i, e := range c.Exchanges {
					if e.Request == nil {
						continue
					}
					name := fmt.Sprintf("%s/%d", c.Name, i)
					g := sniff([]byte(e.Request.Body))
					require.Contains(t, g.formats, a.format, name)
					if !g.ambiguous && g.formats[0] == a.format {
						sure++
					} else {
						unsure++
						t.Logf("%s: %v", name, g.formats)
					}
					if body := []byte(e.Response.Body); json.Valid(body) || streamed(body) {
						require.NotEmpty(t, sniff([]byte(e.Response.Body)).other, "%s: %.200s", name, e.Response.Body)
					}
				}
			}
			t.Logf("%d recognized, %d not", sure, unsure)
			require.NotZero(t, sure, "the recorded requests are not where they are expected")
			require.Less(t, unsure, sure/10)
		})
	}
}
