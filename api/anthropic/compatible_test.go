package anthropic

import (
	"net/http"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/compatible"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/testkit/providertest"
	"github.com/stretchr/testify/require"
)

// TestContextTooLongOfACompatibleServerIsRecognized reads the error as llama.cpp words it.
func TestContextTooLongOfACompatibleServerIsRecognized(t *testing.T) {
	for _, body := range []string{
		`{"type":"error","error":{"type":"exceed_context_size_error","message":"too many"}}`,
		`{"type":"error","error":{"type":"invalid_request_error","message":"request (900 tokens) exceeds the available context size (512 tokens)"}}`,
	} {
		require.ErrorIs(t, newError(400, nil, []byte(body)), api.ErrContextTooLong, body)
	}
}

func TestStopSequenceBesideEndTurnIsTheReason(t *testing.T) {
	for said, want := range map[string]content.Stop{
		`"stop_reason":"end_turn","stop_sequence":"X"`:      content.StopSequence,
		`"stop_reason":"end_turn","stop_sequence":null`:     content.StopEndTurn,
		`"stop_reason":"end_turn"`:                          content.StopEndTurn,
		`"stop_reason":"stop_sequence","stop_sequence":"X"`: content.StopSequence,
		`"stop_reason":"max_tokens","stop_sequence":"X"`:    content.StopMaxTokens,
	} {
		streamed, err := fold(`data: {"type":"message_start","message":{"id":"m"}}` + "\n\n" +
			`data: {"type":"message_delta","delta":{` + said + `}}` + "\n\n" + `data: {"type":"message_stop"}` + "\n\n")
		require.NoError(t, err)
		require.Equal(t, want, streamed.Stop, said)

		_, finish, err := decodeMessage([]byte(`{"type":"message","content":[],`+said+`}`), nil)
		require.NoError(t, err)
		require.Equal(t, want, finish.Stop, said)
	}
}

// TestStreamWithoutMessageStartIsAnAnswer reads the stream of a server that begins it with the first text, which never comes where
// the model writes a stop sequence at once.
func TestStreamWithoutMessageStartIsAnAnswer(t *testing.T) {
	const end = `data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":"<"},"usage":{"output_tokens":2}}` + "\n\n" +
		`data: {"type":"message_stop"}` + "\n\n"
	answer, err := fold(end)
	require.NoError(t, err)
	require.Equal(t, api.Finish{API: API, Stop: content.StopSequence, Usage: content.Usage{Output: 2, Incomplete: true}}, answer.Finish)
	require.Zero(t, answer.Blocks.Len())

	answer, err = fold(`data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hi"}}` + "\n\n" +
		`data: {"type":"content_block_stop","index":0}` + "\n\n" + end)
	require.NoError(t, err)
	require.Equal(t, "Hi", answer.Blocks.Text())
}

// TestMessagesKeepWhatTheServerReportsBesideItsBlocks reads facts about the whole response where the API and compatible servers have them: in the
// message, in the event at its end, and in its delta.
func TestMessagesKeepWhatTheServerReportsBesideItsBlocks(t *testing.T) {
	const want = `{"system_fingerprint":"fp","timings":{"n":2.0},"container":{"id":"c"}}`
	streamed, err := fold(`data: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"model":"x","system_fingerprint":"fp","container":null,"usage":{}}}` + "\n\n" +
		`data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null,"container":{"id":"c"}},"usage":{"output_tokens":2},"timings":{"n":2.0}}` + "\n\n" +
		`data: {"type":"message_stop"}` + "\n\n")
	require.NoError(t, err)
	require.JSONEq(t, want, string(streamed.Details))

	_, finish, err := decodeMessage([]byte(`{"id":"m","type":"message","role":"assistant","content":[],"model":"x","stop_reason":"end_turn","stop_sequence":null,"usage":{},`+want[1:]), nil)
	require.NoError(t, err)
	require.JSONEq(t, want, string(finish.Details))
}

// TestImagesThatAServerDoesNotAcceptAreNotSentAgain reads the error as llama.cpp words it: with a status that is retried otherwise.
func TestImagesThatAServerDoesNotAcceptAreNotSentAgain(t *testing.T) {
	for _, what := range []string{"image", "audio"} {
		err := newError(500, nil, []byte(`{"error":{"code":500,"message":"`+what+` input is not supported - hint: provide the mmproj","type":"server_error"}}`))
		require.ErrorIs(t, err, api.ErrInvalidRequest)
		require.False(t, api.Retryable(err))
	}
	require.ErrorIs(t, newError(500, nil, []byte(`{"error":{"message":"failed","type":"api_error"}}`)), api.ErrServer)
}

func TestBodiesForEachServerAreAsWrittenDown(t *testing.T) {
	thinking := []content.Thinking{
		{Text: "As llama.cpp says it.", Extra: content.Extra{API: API, JSON: "{}"}},
		{Text: "As Anthropic says it.", Signature: "c2ln", Extra: content.Extra{API: API, JSON: "{}"}},
		{Text: "As another API says it.", Extra: content.Extra{API: "openai-chat", JSON: `{"field":"reasoning"}`}},
	}
	providertest.RequireServerBodies(t, "servers.txt", thinking, func(server compatible.Server, req api.Request) ([]byte, []api.RepairNote, error) {
		return Body(req, "model-x", &Options{Server: server})
	})
}

// TestServerMustBeKnownAndAddressed: a request with the wrong form, or to the wrong server, is not sent.
func TestServerMustBeKnownAndAddressed(t *testing.T) {
	hello := api.Request{Messages: []content.Message{{Role: content.User, Blocks: content.Words("Hello")}}}
	key := option.WithAPIKey("k")
	for name, o := range map[string]*Options{
		"unknown":      {Server: "lama", SDK: []option.RequestOption{key, option.WithBaseURL("http://127.0.0.1:1")}},
		"at Anthropic": {Server: compatible.LlamaCPP, SDK: []option.RequestOption{option.WithoutEnvironmentDefaults(), key, option.WithHTTPClient(nobody{})}},
	} {
		_, err := api.NewClient(New("m", o), nil).Send(t.Context(), hello)
		require.ErrorIs(t, err, api.ErrInvalidRequest, name)
		require.ErrorContains(t, err, map[string]string{
			"unknown":      `Options.Server: "lama" is not a known server; known are `,
			"at Anthropic": "Options.Server: the base URL is Anthropic's own, and not that of llama.cpp: set it in Options.SDK",
		}[name])
	}
}

// nobody is an HTTP client that no request may reach.
type nobody struct{}

func (nobody) Do(*http.Request) (*http.Response, error) { panic("a request was sent") }

// TestLlamaCPPGetsOnlyWhatItKnows sends a conversation with files and blocks of Anthropic's own, which llama.cpp ignores.
func TestLlamaCPPGetsOnlyWhatItKnows(t *testing.T) {
	own := func(j content.JSON) content.Opaque { return content.Opaque{API: API, JSON: j} }
	blocks := func(list ...content.Block) content.Blocks {
		made, err := content.Of(list...)
		require.NoError(t, err)
		return made
	}
	picture := content.Image{Source: content.Source{MediaType: "image/png", Data: onePNG}}
	paper := content.Document{Title: "Paper", Source: content.Source{MediaType: "application/pdf", Data: "JVBERi0xLjcK"}}
	req := api.Request{
		Tools: []content.Tool{{Name: "web_search", Extra: content.Extra{API: API, JSON: `{"type":"web_search_20250305","name":"web_search"}`}}},
		Messages: []content.Message{
			{Role: content.User, Blocks: blocks(picture, paper)},
			{Role: content.Assistant, Blocks: blocks(
				own(`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"snow in Oslo"}}`),
				own(`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}`), content.Text{Text: "None."},
			)},
			{Role: content.User, Blocks: content.Words("Well?")},
		},
	}

	for server, known := range map[compatible.Server]bool{compatible.LlamaCPP: false, "": true} {
		body, _, err := Body(req, "m", &Options{Server: server})
		require.NoError(t, err)
		for _, kind := range []string{`"type":"document"`, `"server_tool_use"`, `"web_search_tool_result"`, `"web_search_20250305"`} {
			require.Equal(t, known, strings.Contains(string(body), kind), "%q: %s", server, kind)
		}
		require.Contains(t, string(body), `"type":"image"`)
	}

	body, notes, err := Body(req, "m", &Options{TextOnly: true})
	require.NoError(t, err)
	require.NotContains(t, string(body), "base64")
	require.Contains(t, string(body), "[image (image/png) left out: the model does not accept image]")
	require.Len(t, notes, 2)
}
