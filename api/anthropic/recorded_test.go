package anthropic

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/option"
	json "github.com/goccy/go-json/v2"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/fixture"
	"github.com/stretchr/testify/require"
)

// cassette is a file of recorded traffic.
type cassette struct {
	name         string
	HistoryLinks [][2]int   `json:"history_links"`
	Exchanges    []exchange `json:"exchanges"`
}

type exchange struct {
	API     string `json:"api"`
	Request *struct {
		Body string `json:"body"`
	} `json:"request"`
	Response struct {
		Status  int               `json:"status"`
		Headers map[string]string `json:"headers"`
		Body    string            `json:"body"`
	} `json:"response"`
	Derived struct {
		Text       string `json:"text"`
		ToolCalls  []any  `json:"tool_calls"`
		Signatures int    `json:"n_signatures"`
		Stop       string `json:"stop"`
		ResponseID string `json:"response_id"`
	} `json:"derived"`
}

// body is the recorded bytes of the response.
func (e exchange) body(t testing.TB) []byte {
	if coded, ok := strings.CutPrefix(e.Response.Body, "base64:"); ok {
		b, err := base64.StdEncoding.DecodeString(coded)
		require.NoError(t, err)
		return b
	}
	return []byte(e.Response.Body)
}

func (e exchange) streamed() bool {
	return strings.HasPrefix(e.Response.Body, "event:") || strings.Contains(e.Response.Headers["content-type"], "event-stream")
}

// header is the recorded header, but for what was about the recorded connection.
func (e exchange) header() http.Header {
	h := http.Header{}
	for name, value := range e.Response.Headers {
		switch strings.ToLower(name) {
		case "content-encoding", "content-length", "transfer-encoding", "connection":
		default:
			h.Set(name, value)
		}
	}
	if e.streamed() {
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
	} else if h.Get("Content-Type") == "" {
		h.Set("Content-Type", "application/json")
	}
	return h
}

// cassettes reads every recorded file of Anthropic's API, and those exchanges of the cross-provider files that are its.
func cassettes(t testing.TB) []cassette {
	t.Helper()
	root := fixture.Path(t, "cassettes")
	var all []cassette
	for _, pattern := range []string{"anthropic/*.json", "cross-provider/*.json"} {
		names, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		for _, name := range names {
			data, err := os.ReadFile(name)
			require.NoError(t, err)
			c := cassette{name: strings.TrimSuffix(filepath.Base(name), ".json")}
			require.NoError(t, json.Unmarshal(data, &c, lenient), name)
			if strings.HasPrefix(pattern, "cross") {
				c = c.only()
			}
			all = append(all, c)
		}
	}
	require.NotEmpty(t, all)
	return all
}

// only keeps the exchanges with Anthropic of a file with several providers.
func (c cassette) only() cassette {
	kept := cassette{name: "cross-provider/" + c.name}
	for _, e := range c.Exchanges {
		if strings.Contains(e.API, "messages") {
			kept.Exchanges = append(kept.Exchanges, e)
		}
	}
	return kept
}

// recording is a request of a cassette, imported.
type recording struct {
	model    string
	options  Options
	dag      dag.DAG
	messages []content.Message
}

// importRequest reads a request as Anthropic's API has it. Everything that is neither system prompt, tool nor message goes into
// Options.Body, as a program would put it there.
func importRequest(t testing.TB, body string) recording {
	t.Helper()
	list, err := members(content.JSON(body))
	require.NoError(t, err)
	r := recording{dag: dag.New(), options: Options{Cache: CacheOff, NoStream: true}}
	var rest []member
	for _, m := range list {
		switch m.name {
		case "model":
			r.model, _ = text(m.value)
		case "stream":
			r.options.NoStream = m.value != "true"
		case "system":
			r.importSystem(t, m.value)
		case "tools":
			r.dag = r.dag.Tools(importTools(t, m.value)...)
		case "messages":
			r.importMessages(t, m.value)
		default:
			rest = append(rest, m)
		}
	}
	r.options.Body = object(rest)
	require.NoError(t, r.dag.Err())
	return r
}

func (r *recording) importSystem(t testing.TB, j content.JSON) {
	blocks, ok := knownContent(j)
	require.True(t, ok, j)
	for _, b := range blocks.All() {
		r.dag = r.dag.System(b.(content.Text).Text)
	}
}

func importTools(t testing.TB, j content.JSON) []dag.Tool {
	var raw []rawJSON
	require.NoError(t, j.Decode(&raw))
	var tools []dag.Tool
	for _, one := range raw {
		list, err := members(content.JSON(one))
		require.NoError(t, err)
		var def content.Tool
		schema, rest := take(list, "input_schema")
		def.Name, _, _ = takeText(rest, "name")
		if schema != "" {
			_, rest, _ = takeText(rest, "name")
			def.Description, rest, _ = takeText(rest, "description")
			def.Schema = schema
		}
		def.Extra = extra(rest)
		tools = append(tools, def)
	}
	return tools
}

func (r *recording) importMessages(t testing.TB, j content.JSON) {
	var raw []struct {
		Role    string  `json:"role"`
		Content rawJSON `json:"content"`
	}
	require.NoError(t, j.Decode(&raw))
	for _, m := range raw {
		blocks, ok := knownContent(content.JSON(m.Content))
		require.True(t, ok, string(m.Content))
		r.messages = append(r.messages, content.Message{Role: content.Role(m.Role), Blocks: blocks})
		switch m.Role {
		case "user":
			r.dag = r.dag.User("", blocks.Slice()...)
		case "assistant":
			r.dag = r.dag.Assistant("", blocks.Slice()...)
		default:
			t.Fatalf("a message of role %q", m.Role)
		}
	}
	last := r.messages[len(r.messages)-1]
	if _, said := last.Blocks.At(last.Blocks.Len() - 1).(content.Text); said && last.Role == content.Assistant {
		r.options.Prefill = true
	}
}

// player is a local server that answers with recorded responses, in order, and keeps the requests.
type player struct {
	*httptest.Server
	mu     sync.Mutex
	tape   []exchange
	bodies []string
}

func playTape(t testing.TB, tape ...exchange) *player {
	p := &player{tape: tape}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := readAll(t, r.Body)
		p.mu.Lock()
		n := len(p.bodies)
		p.bodies = append(p.bodies, body)
		p.mu.Unlock()
		if n >= len(p.tape) {
			http.Error(w, `{"type":"error","error":{"type":"invalid_request_error","message":"the tape is over"}}`, http.StatusBadRequest)
			return
		}
		for name, values := range p.tape[n].header() {
			w.Header()[name] = values
		}
		w.WriteHeader(p.tape[n].Response.Status)
		w.Write(p.tape[n].body(t))
	}))
	t.Cleanup(p.Server.Close)
	return p
}

// requests returns the bodies that came until now.
func (p *player) requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.bodies...)
}

// sdkOptions lets the SDK talk to the server, with nothing of the environment.
func (p *player) sdkOptions() []option.RequestOption { return localSDK(p.URL, p.Client()) }

func localSDK(url string, client *http.Client) []option.RequestOption {
	return []option.RequestOption{
		option.WithoutEnvironmentDefaults(), option.WithAPIKey("test-key"), option.WithBaseURL(url), option.WithHTTPClient(client),
	}
}
