package providers

import (
	"bytes"
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	json "github.com/goccy/go-json/v2"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/testkit/fixture"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
)

// cassette is a file of recorded traffic.
type cassette struct {
	API       string     `json:"api"`
	Exchanges []exchange `json:"exchanges"`
}

type exchange struct {
	API     string `json:"api"`
	Request *struct {
		Body string `json:"body"`
	} `json:"request"`
	Response struct {
		Status int `json:"status"`
	} `json:"response"`
}

// recorded is the names of the APIs in the recordings.
var recorded = map[string]string{"messages": "anthropic", "chat": "openai-chat", "responses": "openai-responses", "generateContent": "gemini"}

// conversation is one that was recorded with an API.
type conversation struct {
	name   string
	origin provider
	body   []byte
}

// conversations returns every recorded request that its API took.
func conversations(t *testing.T) []conversation {
	root := fixture.Path(t, "cassettes")
	names, err := filepath.Glob(filepath.Join(root, "*", "*.json"))
	require.NoError(t, err)

	// Every third is enough, but for PLAIT_LONG.
	every := seedtest.Rounds(3, 1)
	if testing.Short() {
		every = 5
	}
	t.Logf("one recording in %d", every)

	var all []conversation
	for i, name := range names {
		if i%every > 0 {
			continue
		}
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		var c cassette
		require.NoError(t, json.Unmarshal(data, &c, jsonx.Lenient), name)
		for i, e := range c.Exchanges {
			if e.Request == nil || e.Response.Status != 200 {
				continue
			}
			origin, ok := named(recorded[first(e.API, c.API)])
			require.True(t, ok, "%s: an API %q", name, first(e.API, c.API))
			all = append(all, conversation{fmt.Sprintf("%s/%d", strings.TrimSuffix(filepath.Base(name), ".json"), i), origin, []byte(e.Request.Body)})
		}
	}
	return all
}

func first(names ...string) string {
	for _, name := range names {
		if name != "" && name != "mixed" {
			return name
		}
	}
	return ""
}

func named(name string) (provider, bool) {
	for _, p := range providers {
		if p.name == name {
			return p, true
		}
	}
	return provider{}, false
}

// notTaken lists the recorded conversations that an API took once and its strict fake does not.
var notTaken = map[string]string{
	"req_llm--openai-gpt-4-1-object-streaming/0": `its tool has a member "function", as Chat Completions want it, which the API ignored`,
}

// world is the four APIs, each behind its strict fake. Every turn that one is asked for is a thought, a word and a tool call, and
// then, told the result, another word.
type world struct {
	fakes   map[string]*fake.API
	servers map[string]*httptest.Server
}

func newWorld(t *testing.T, turns int, tool string) world {
	w := world{map[string]*fake.API{}, map[string]*httptest.Server{}}
	for _, p := range providers {
		var replies []fake.Reply
		for n := range turns {
			said := []content.Block{content.Text{Text: "Let me see."}}
			if p.name != "openai-chat" { // which does not tell what it thinks
				said = append([]content.Block{content.Thinking{Text: "Hm.", Signature: "c2lnbmVk"}}, said...)
			}
			if tool != "" {
				said = append(said, content.ToolUse{ID: fmt.Sprintf("call_%s_%d", p.name, n), Name: tool, Input: `{ "x": 1.0 }`})
			}
			replies = append(replies, p.says(said...))
			if tool != "" {
				replies = append(replies, p.says(content.Text{Text: "I see."}))
			}
		}
		w.fakes[p.name] = p.fake(replies...)
		w.servers[p.name] = direct(t, w.fakes[p.name])
	}
	return w
}

// asked is what an API was sent until now, message by message.
func (w world) asked(t *testing.T, p provider) [][]jsonx.Raw {
	var all [][]jsonx.Raw
	for _, body := range w.fakes[p.name].Bodies() {
		all = append(all, p.messages(t, body))
	}
	return all
}

// messages is the items of a body that are its messages.
func (p provider) messages(t *testing.T, body []byte) []jsonx.Raw {
	list, err := jsonx.Members(content.JSON(body))
	require.NoError(t, err)
	value, _ := jsonx.Take(list, p.items)
	var items []jsonx.Raw
	require.NoError(t, value.Decode(&items))
	return items
}

// begin is a recorded conversation. It is not ok where a conversation does not take what was recorded.
func begin(t *testing.T, c conversation) (d dag.DAG, tool string, req api.Request, ok bool) {
	req, err := c.origin.parse(c.body)
	require.NoError(t, err)
	d = dag.New()
	for _, prompt := range req.System {
		d = d.System(prompt)
	}
	var tools []dag.Tool
	for _, def := range req.Tools {
		if !def.Server() {
			tool = def.Name
		}
		tools = append(tools, def)
	}
	d = d.Tools(tools...)
	if n := len(req.Messages); n > 0 && req.Messages[n-1].Role == content.Assistant { // so that nobody goes on with its words
		req.Messages = append(req.Messages, content.Message{Role: content.User, Blocks: content.Words("Go on.")})
	}
	for _, m := range req.Messages {
		if m.Role == content.User {
			d = d.User("", m.Blocks.Slice()...)
		} else {
			d = d.Assistant("", m.Blocks.Slice()...)
		}
	}
	return d, tool, req, d.Err() == nil
}

// TestHandOff lets each recorded conversation go on with all four APIs in turn, twice around, each with a tool call of its own. The
// strict fakes take every request. What an API is sent begins, byte for byte, with what it was sent before: so its own thinking,
// signatures and other blocks come back to it as they were, whoever spoke in between; and so do those that were recorded.
func TestHandOff(t *testing.T) {
	t.Parallel()
	all := conversations(t)
	passed, total := map[string]int{}, map[string]int{}
	for _, c := range all {
		total[c.origin.name]++
		if why := notTaken[c.name]; why != "" {
			t.Logf("left out: %s: %s", c.name, why)
			continue
		}
		if t.Run(c.origin.name+"/"+c.name, func(t *testing.T) { handOff(t, c) }) {
			passed[c.origin.name]++
		}
	}
	for _, p := range providers {
		t.Logf("conversations of %s handed to every other API, and back: %d of %d", p.name, passed[p.name], total[p.name])
	}
}

const rounds = 2

func handOff(t *testing.T, c conversation) {
	d, tool, req, ok := begin(t, c)
	if !ok {
		require.ErrorIs(t, d.Err(), content.ErrTool) // a definition that the API took long ago
		return
	}
	w := newWorld(t, rounds, tool)
	plain := api.Options{Cache: api.CacheOff, MaxTokens: 20_000}
	for range rounds {
		for _, p := range turnOrder(c.origin) {
			model := api.NewClient(p.at(w.servers[p.name], plain, false), &api.ClientOptions{Attempts: 1})
			agent := executor.Agent{Provider: model, Handler: func(context.Context, executor.Call) (any, error) { return "It is so.", nil }, Limits: executor.Limits{Turns: 3}}
			var err error
			d, err = agent.Run(t.Context(), d)
			require.NoError(t, err, "%s", p.name)
			require.Empty(t, w.fakes[p.name].Refused(), "%s", p.name)
			d = d.User("And now?")
		}
	}
	req.Options = plain
	before, _, err := c.origin.body(req)
	require.NoError(t, err)
	for _, p := range providers {
		asked := w.asked(t, p)
		if p.name == c.origin.name {
			asked = append([][]jsonx.Raw{c.origin.messages(t, before)}, asked...)
		}
		for i := 1; i < len(asked); i++ {
			requireGrows(t, p, asked[i-1], asked[i])
		}
	}
}

// turnOrder is all APIs, from the one after the origin to the origin itself.
func turnOrder(origin provider) []provider {
	for i, p := range providers {
		if p.name == origin.name {
			return append(append([]provider(nil), providers[i+1:]...), providers[:i+1]...)
		}
	}
	return nil
}

// requireGrows makes sure that a request begins with all that the one before it said.
func requireGrows(t *testing.T, p provider, before, after []jsonx.Raw) {
	require.GreaterOrEqual(t, len(after), len(before), "%s", p.name)
	for i := range before {
		if !bytes.Equal(before[i], after[i]) {
			require.Equal(t, string(before[i]), string(after[i]), "%s: message %d of %d", p.name, i, len(before))
		}
	}
}
