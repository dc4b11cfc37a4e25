package providers

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/anthropic"
	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/api/gemini"
	"github.com/plait-dev/plait/api/openai"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/pattern"
	"github.com/plait-dev/plait/internal/testkit/providertest"
	_ "github.com/plait-dev/plait/internal/testkit/quick"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/plait-dev/plait/node"
)

// dialects describes each API to the random conversations. A compatible server does not know all of it.
func dialects(t *testing.T) map[string]*providertest.Dialect {
	said, _, err := openai.ImportResponses([]byte(`{"model":"m","input":[
		{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"Let me see."}],"encrypted_content":"c2VhbGVk"},
		{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"x"}},
		{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"It rains.","annotations":[]}]}]}`))
	require.NoError(t, err)
	responses := said.Messages[0].Blocks.Slice()

	chat := content.Thinking{Text: "Let me see.", Extra: content.Extra{API: openai.ChatAPI, JSON: `{"field":"reasoning_content"}`}}
	signed := content.Thinking{Text: "Let me see.", Signature: "c2lnbmVk"}
	const search = `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"q":"x"}}`
	const found = `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}`
	const code = `{"executableCode":{"code":"1","language":"PYTHON"},"thoughtSignature":"c2ln"}`
	const output = `{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1"}}`

	all := map[string]*providertest.Dialect{
		openai.ChatAPI: {
			API: openai.ChatAPI, Thought: chat, Thoughts: []content.Block{
				content.Thinking{Text: "x", Extra: content.Extra{API: openai.ChatAPI, JSON: `{"field":"reasoning"}`}},
			},
			Opaque: []content.JSON{
				`{"type":"text","text":"x"}`, `{"type":"file","file":{"file_id":"file_1"}}`, `{"role":"system","content":"Be brief."}`,
				`{"name":"bob"}`, `{"type":7}`, `{}`,
			},
			Served: func(*providertest.World) []content.Block {
				return []content.Block{chat, content.Text{Text: "Found it.", Extra: content.Extra{API: openai.ChatAPI, JSON: `{"annotations":[]}`}}}
			},
		},
		openai.ResponsesAPI: {
			API: openai.ResponsesAPI, Thought: responses[0], Thoughts: []content.Block{content.Thinking{Text: "x"}},
			ToolExtras: []content.JSON{`{"type":"custom","format":{"type":"text"}}`}, ServerTools: []content.JSON{`{"type":"web_search"}`},
			Opaque: []content.JSON{
				`{"type":"web_search_call","id":"ws_2","status":"completed","action":{"type":"search","query":"x"}}`, `{"type":"reasoning","summary":[]}`,
				`{"type":"computer_call","id":"cu_1","call_id":"call_1","action":{"type":"click"}}`, `{"type":"computer_call_output","call_id":"call_1","output":{}}`,
				`{"type":"message","role":"developer","content":"Be brief."}`, `{"type":"input_text","text":"x"}`, `{}`,
			},
			Served: func(*providertest.World) []content.Block { return responses },
		},
		anthropic.API: {
			API: anthropic.API, Thought: signed, Thoughts: []content.Block{content.Thinking{Redacted: "cmVkYWN0ZWQ="}},
			Extras:      []content.JSON{`{"cache_control":{"type":"ephemeral"}}`},
			ServerTools: []content.JSON{`{"type":"web_search_20250305","name":"web_search","max_uses":1}`},
			Opaque: []content.JSON{
				search, found, `{"type":"text","text":""}`, `{"type":"image","source":{"type":"base64"}}`,
				`{"role":"system","content":[{"type":"text","text":"Be brief."}]}`, `{}`,
			},
			Served: func(*providertest.World) []content.Block {
				return []content.Block{
					content.Opaque{API: anthropic.API, JSON: search}, content.Opaque{API: anthropic.API, JSON: found}, content.Text{Text: "Found it."},
				}
			},
		},
		gemini.API: {
			API: gemini.API, Thought: content.Thinking{Text: "Let me see.", Signature: "c2lnbmVk", Extra: content.Extra{API: gemini.API, JSON: "{}"}},
			Thoughts:    []content.Block{content.Thinking{Text: "x", Extra: content.Extra{API: gemini.API, JSON: "{}"}}},
			Extras:      []content.JSON{`{"thoughtSignature":"c2lnbmVk"}`},
			ServerTools: []content.JSON{`{"type":"google_search","googleSearch":{}}`},
			Opaque:      []content.JSON{code, output, `{"text":"x"}`, `{"functionResponse":{"name":"f","response":{}}}`, `{}`},
			Served: func(*providertest.World) []content.Block {
				return []content.Block{content.Opaque{API: gemini.API, JSON: code}, content.Opaque{API: gemini.API, JSON: output}, content.Text{Text: "Found it."}}
			},
		},
	}
	for _, d := range all {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if name != d.API {
				d.Others = append(d.Others, all[name])
			}
		}
	}
	return all
}

// randomOptions returns options at random.
func randomOptions(w *providertest.World) api.Options {
	warm := 0.5
	form := api.Schema{Name: "form", JSON: `{"type":"object","properties":{"a":{"type":"boolean"}},"required":["a"],"additionalProperties":false}`}
	return api.Options{
		Temperature:   providertest.Pick(w, nil, &warm),
		StopSequences: providertest.Pick(w, nil, []string{"STOP", " "}),
		ToolChoice:    providertest.Pick(w, api.ToolsAuto, api.ToolsAny, api.ToolsNone, api.OneTool("f"), api.OneTool("absent")),
		OneCall:       w.One(2),
		Thinking:      providertest.Pick(w, "", api.ThinkOff, api.ThinkAuto, api.ThinkHigh, api.ThinkTokens(2000)),
		Output:        providertest.Pick(w, api.Schema{}, api.Schema{}, form),
		Cache:         providertest.Pick(w, api.CacheShort, api.CacheLong, api.CacheOff),
	}
}

// way is how a request ends after its response broke off.
type way string

const (
	gone      way = "the server is gone"
	starting  way = "the server is starting"
	locked    way = "the server wants another key"
	cancelled way = "the program cancels while waiting"
	empty     way = "the next response is empty"
	shorter   way = "the next response breaks off earlier"
)

var ways = []way{gone, starting, locked, cancelled, empty, shorter}

// breaking is a network that breaks one response off, and from then on fails in one of the ways.
type breaking struct {
	way  way
	skip int // the number of responses before the one that breaks off
	keep int // the number of its bytes that arrive

	reach http.RoundTripper           // reaches the server
	kill  func() error                // stops the server; the error that the client reads, or nil for that of the connection
	fails func(status int) fake.Reply // the API's errors
	kept  func()                      // counts a response of which a part was kept after further attempts

	arrived [][]byte // of each response that broke off
	whole   bool     // the response arrived whole: it is shorter than keep
	header  http.Header
	abrupt  bool // the connection of the first one does not end in order
}

func (b *breaking) RoundTrip(r *http.Request) (*http.Response, error) {
	switch {
	case b.skip > 0, b.whole:
		b.skip--
		return b.reach.RoundTrip(r)
	case len(b.arrived) == 0:
		res, err := b.reach.RoundTrip(r)
		if err != nil || res.StatusCode != http.StatusOK {
			return res, err
		}
		b.header, b.arrived = res.Header, [][]byte{nil}
		res.Body = &brokenBody{ReadCloser: res.Body, b: b, left: b.keep}
		return res, nil
	}

	var reply fake.Reply
	switch b.way {
	case starting:
		reply = b.fails(http.StatusServiceUnavailable)
	case locked:
		reply = b.fails(http.StatusUnauthorized)
	case empty:
		reply.Status = http.StatusOK
	case shorter:
		reply = fake.Reply{Status: http.StatusOK, Body: string(b.arrived[0][:len(b.arrived[0])/2])}
		b.arrived = append(b.arrived, []byte(reply.Body))
	default:
		return b.reach.RoundTrip(r)
	}

	recorded := httptest.NewRecorder()
	if maps.Copy(recorded.Header(), b.header); reply.Status != http.StatusOK {
		recorded.Header().Set("Content-Type", "application/json")
	}
	recorded.WriteHeader(reply.Status)
	io.WriteString(recorded, reply.Body)
	res := recorded.Result()
	res.Request = r
	return res, nil
}

// arrivedWhole ends the fault: the response did not break off.
func (b *breaking) arrivedWhole() { b.whole, b.arrived = true, nil }

// events returns the whole events of each response that broke off. If a connection ends in order, its last event needs no
// empty line after it.
func (b *breaking) events() (all [][]string) {
	for i, arrived := range b.arrived {
		if i == 0 && b.abrupt {
			arrived = arrived[:max(0, bytes.LastIndex(arrived, []byte("\n\n")))]
		}
		var whole []string
		for line := range strings.Lines(string(arrived)) {
			if data := strings.TrimPrefix(line, "data:"); content.JSON(data).Valid() {
				whole = append(whole, data)
			}
		}
		all = append(all, whole)
	}
	return all
}

// began reports whether a response broke off after an event.
func (b *breaking) began() bool {
	return slices.ContainsFunc(b.events(), func(events []string) bool { return len(events) > 0 })
}

// reported returns the number of responses that broke off after an event with the tokens of their input.
func (b *breaking) reported() (n int) {
	for _, events := range b.events() {
		if slices.ContainsFunc(events, tokensOfInput().MatchString) {
			n++
		}
	}
	return n
}

var tokensOfInput = pattern.Of(`"(input_tokens|prompt_tokens|promptTokenCount)":[1-9]`)

// brokenBody is the body of the response that breaks off.
type brokenBody struct {
	io.ReadCloser
	b    *breaking
	left int
	end  bool  // the server was stopped
	err  error // of kill
}

func (r *brokenBody) Read(p []byte) (int, error) {
	if r.left <= 0 && !r.end {
		r.end = true
		if r.err = r.b.kill(); r.err == nil {
			r.left = 1 << 30 // whatever was on its way
		}
	}
	if r.left <= 0 {
		return 0, r.err
	}

	n, err := r.ReadCloser.Read(p[:min(len(p), r.left)])
	r.left -= n
	r.b.arrived[0] = append(r.b.arrived[0], p[:n]...)
	if err == io.EOF && !r.end {
		r.b.arrivedWhole()
	}
	return n, err
}

// models are the models of several APIs that take part in random conversations.
type models interface {
	// model returns a model of an API. Its requests go through the network.
	model(name string, noStream bool, network http.RoundTripper) api.Provider
	// options returns options at random, of a turn that breaks off or of another one.
	options(w *providertest.World, breaks bool) api.Options
	// breaking returns a network to the API that breaks a response off.
	breaking(w *providertest.World, name string, noStream bool) *breaking
	// reach returns a network to the API without faults.
	reach(name string) http.RoundTripper
	// other returns a model of another API, whose server works. It is nil if there is none.
	other(w *providertest.World, name string) api.Provider
	// tokens returns the number of tokens of input that each server reports for any request; 0 if it varies.
	tokens() int64
	// refused returns an error if a server refused a request.
	refused() error
}

// turn returns the turns of the models: most of them with the API of the conversation, and some with another one. Half
// of them are broken off if breaks is set, and continued after that.
func turn(m models, apis []string, own string, breaks bool) providertest.Turn {
	return func(w *providertest.World, d dag.DAG) (dag.DAG, error) {
		name := own
		if w.One(3) {
			name = providertest.Pick(w, apis...)
		}
		noStream := w.One(3)
		d = asked(w, d)

		agent := executor.Agent{
			Limits:  executor.Limits{Turns: 1 + w.IntN(3)},
			Handler: func(context.Context, executor.Call) (any, error) { return "It is so.", nil },
		}
		if breaks && w.One(2) {
			network := m.breaking(w, name, noStream)
			w.Logf("   a turn with %s that breaks off after %d responses and %d bytes: %s", name, network.skip, network.keep, network.way)
			model := m.model(name, noStream, network)
			other := m.other(w, name)
			if other != nil {
				w.Logf("   another provider takes over")
				model = api.Fallback(model, other)
			}
			agent.Provider, agent.Options = client(model), m.options(w, true)
			var err error
			if d, err = brokenTurn(agent, d, network, other != nil, m.tokens()); err != nil {
				return d, errors.Join(fmt.Errorf("%s, %s: %w", name, network.way, err), m.refused())
			}
			d = asked(w, d)
		}

		w.Logf("   a turn with %s", name)
		agent.Provider, agent.Options = client(m.model(name, noStream, m.reach(name))), m.options(w, false)
		continued, err := agent.Run(context.Background(), d)
		if isOneOf(err, notSent) {
			return d, nil
		}
		return continued, errors.Join(err, m.refused())
	}
}

// client returns a client that does not wait between attempts.
func client(p api.Provider) *api.Client {
	return api.NewClient(p, &api.ClientOptions{Attempts: 3, MinWait: time.Nanosecond})
}

// asked appends a message of the user, but for one conversation in four.
func asked(w *providertest.World, d dag.DAG) dag.DAG {
	if next := d.User("Go on."); !w.One(4) && next.Err() == nil {
		return next
	}
	return d
}

// notSent are the errors of runs that send no request: there is nothing to send, or to continue.
var notSent = []error{api.ErrNothing, executor.ErrAnswered}

// brokenTurn runs a turn over a network that breaks a response off. What the events showed of the response must be in the
// conversation, with the tokens that were reported, and each attempt's cause in the error.
func brokenTurn(agent executor.Agent, d dag.DAG, network *breaking, fallback bool, tokens int64) (dag.DAG, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	seen, first := responseSeen{whole: -1}, network.skip
	var failure error
	retried := 0
	for event, err := range agent.Stream(ctx, d) {
		switch e := event.(type) {
		case executor.MessageStart:
			if e.Role != content.Assistant {
				continue
			}
			seen = responseSeen{whole: seen.whole + 1, shown: []map[int]string{{}}}
		case executor.MessageDelta:
			show(seen.shown[len(seen.shown)-1], e.Event)
		case executor.Retry:
			retried++
			seen.shown, seen.causes = append(seen.shown, map[int]string{}), append(seen.causes, e.Err)
			if network.way == cancelled {
				cancel()
			}
		case executor.MessageEnd:
			if e.Node == nil {
				continue // nothing arrived
			}
			if m, _ := e.Node.Message(); m.Role == content.Assistant {
				seen.kept = m
				if seen.whole == first && retried == 0 && m.Answer.Stop != content.StopCut {
					network.arrivedWhole() // nothing but its last bytes were missing
				}
			}
		case executor.End:
			d, failure = e.DAG, err
		}
	}

	// The response that would have broken off was never requested, or nothing but its last bytes were missing.
	if isOneOf(failure, notSent) || failure == nil && retried == 0 || seen.whole > first && !fallback {
		return d, nil
	}
	whole := seen.kept.Role == content.Assistant && seen.kept.Answer.Stop != content.StopCut
	switch {
	case failure != nil && whole:
		return d, nil // the other provider answered, and the run was cancelled after that
	case failure == nil && !fallback:
		return d, errors.New("the request does not fail")
	case failure == nil:
		seen.whole++
	default:
		if err := seen.checkCauses(failure, network.way); err != nil {
			return d, err
		}
		if err := seen.checkPart(); err != nil {
			return d, err
		}
	}

	if len(seen.causes) > 0 && len(seen.kept.Blocks.Slice()) > 0 {
		network.kept()
	}
	run, _ := d.LastRun()
	got, reported := run.Stop.Usage, network.reported()
	if want := tokens * int64(seen.whole+reported); tokens > 0 && got.Input != want || reported > 0 && got.Input+got.CacheRead == 0 {
		return d, fmt.Errorf("%d tokens of input were reported, and these are counted: %+v", want, got)
	}
	if network.began() && !got.Incomplete {
		return d, fmt.Errorf("a response broke off, and the usage is not incomplete: %+v", got)
	}
	return d, nil
}

// responseSeen is what the events of a run showed of its last response.
type responseSeen struct {
	whole  int              // the number of whole responses before
	shown  []map[int]string // of each attempt, by the index of the block
	causes []error          // of each attempt but the last one
	kept   node.Message     // what is in the conversation; zero if nothing
}

// show adds an event to what is shown of a response, by the index of its block.
func show(shown map[int]string, event api.Event) {
	switch e := event.(type) {
	case api.Delta:
		if shown[e.Index] == "" && e.Kind == api.DeltaInput {
			shown[e.Index] = "call of " + e.Tool
		} else if e.Kind != api.DeltaInput {
			shown[e.Index] += e.Text
		}
	case api.BlockEnd:
		shown[e.Index] = shownBlock(e.Block)
	}
}

// shownBlock returns what is shown of a block, beside a response that broke off.
func shownBlock(b content.Block) string {
	switch b := b.(type) {
	case content.Text:
		return b.Text
	case content.Thinking:
		return b.Text
	case content.ToolUse:
		return "call of " + b.Name
	case content.CutToolUse:
		return "call of " + b.Name
	}
	return ""
}

// joined joins what is shown of a response, in the order of its blocks.
func joined(shown map[int]string) string {
	var all strings.Builder
	for _, i := range slices.Sorted(maps.Keys(shown)) {
		all.WriteString(shown[i])
	}
	return all.String()
}

// checkCauses checks the error of a request that failed after its response broke off: it has each attempt's cause.
func (s *responseSeen) checkCauses(err error, how way) error {
	// A connection that ends in order behind half an event leaves invalid JSON.
	brokeOff := []error{api.ErrCut, api.ErrTransport, api.ErrProtocol}
	want := map[way][]error{
		gone: {api.ErrTransport}, starting: {api.ErrOverloaded, api.ErrServer}, locked: {api.ErrAuth}, cancelled: {context.Canceled},
		empty: {api.ErrCut, api.ErrProtocol, api.ErrServer}, shorter: brokeOff,
	}[how]
	if len(s.causes) == 0 {
		want = brokeOff
	}
	if !isOneOf(err, want) {
		return fmt.Errorf("the error is %w", err)
	}
	if len(s.causes) == 0 {
		return nil
	}

	var all *api.AttemptsError
	if !errors.As(err, &all) || !slices.Equal(all.Earlier, s.causes) || !isOneOf(s.causes[0], brokeOff) {
		return fmt.Errorf("the causes %v are not in the error: %w", s.causes, err)
	}
	return nil
}

// checkPart checks that the kept part is the largest of what was shown.
func (s *responseSeen) checkPart() error {
	best, kept := "", ""
	for _, shown := range s.shown {
		if text := joined(shown); len(text) > len(best) {
			best = text
		}
	}
	for _, b := range s.kept.Blocks.All() {
		kept += shownBlock(b)
	}
	if kept != best {
		return fmt.Errorf("%q was shown, and %q is kept", best, kept)
	}
	answer := s.kept.Answer
	if best != "" && (answer.Stop != content.StopCut || answer.API == "" || !answer.Usage.Incomplete) {
		return fmt.Errorf("the part is not described: %+v", answer)
	}
	return nil
}

// fakes are strict fakes of every API, as servers.
type fakes struct {
	servers map[string]*httptest.Server
	fakes   map[string]*fake.API // of the current conversation
	kept    map[way]int          // the number of responses of which a part was kept after further attempts
}

func newFakes(t *testing.T) *fakes {
	f := &fakes{servers: map[string]*httptest.Server{}, kept: map[way]int{}}
	for _, p := range providers {
		f.servers[p.name] = serve(t, nil)
	}
	return f
}

// begin makes the fakes for another conversation, with replies at random.
func (f *fakes) begin(seed uint64) {
	w := &providertest.World{Rand: rand.New(rand.NewPCG(seed, 5))}
	f.fakes = map[string]*fake.API{}
	for _, p := range providers {
		replies := make([]fake.Reply, 60)
		for i := range replies {
			replies[i] = p.says(randomReply(w, p, i)...)
		}
		f.fakes[p.name] = p.fake(replies...)
		if p.name == openai.ChatAPI { // the conversations have the thinking of compatible servers
			f.fakes[p.name] = fake.OpenAICompatible(replies...)
		}
	}
}

// randomReply returns the blocks of reply i.
func randomReply(w *providertest.World, p provider, i int) (said []content.Block) {
	if p.name != openai.ChatAPI && w.One(2) {
		said = append(said, content.Thinking{Text: "Hm. Let me think about it.", Signature: base64.StdEncoding.EncodeToString(fmt.Append(nil, p.name, i))})
	}
	if w.One(2) {
		said = append(said, content.Text{Text: providertest.Pick(w, "Let me see.", "שלום, 👩‍👩‍👧‍👦 e\u0301", " \n", strings.Repeat("Every word counts. ", 20))})
	}
	for j := range w.IntN(4) {
		said = append(said, content.ToolUse{ID: fmt.Sprintf("call_%s_%d_%d", p.name, i, j), Name: providertest.Pick(w, "f", "g", "get_weather"), Input: `{"city":"Oslo","days":[1,2]}`})
	}
	if len(said) == 0 {
		said = append(said, content.Text{Text: "It is so."})
	}
	return said
}

func (f *fakes) model(name string, noStream bool, network http.RoundTripper) api.Provider {
	p, _ := named(name)
	f.servers[name].Client().Transport = network
	return p.at(f.servers[name], api.Options{}, noStream)
}

func (f *fakes) options(w *providertest.World, _ bool) api.Options { return randomOptions(w) }

func (f *fakes) reach(name string) http.RoundTripper { return calling(f.fakes[name]) }

func (f *fakes) breaking(w *providertest.World, name string, _ bool) *breaking {
	p, _ := named(name)
	b := &breaking{
		way: providertest.Pick(w, ways...), skip: w.IntN(2), keep: w.IntN(1500),
		reach: calling(f.fakes[name]), fails: p.fails,
	}
	b.kept = func() { f.kept[b.way]++ }
	end := providertest.Pick(w, io.EOF, io.ErrUnexpectedEOF)
	b.abrupt = end != io.EOF
	b.kill = func() error {
		b.reach = transport(func(*http.Request) (*http.Response, error) { return nil, syscall.ECONNREFUSED })
		return end
	}
	return b
}

func (f *fakes) other(w *providertest.World, name string) api.Provider {
	p := providertest.Pick(w, providers...)
	if p.name == name || w.One(2) {
		return nil
	}
	return f.model(p.name, w.One(2), f.reach(p.name))
}

func (f *fakes) tokens() int64 { return 10 }

func (f *fakes) refused() error {
	for _, p := range providers {
		for i, err := range f.fakes[p.name].Refused() {
			return fmt.Errorf("%w\nsent %s", err, f.fakes[p.name].Bodies()[i])
		}
	}
	return nil
}

// TestRandomConversationsOutliveBrokenResponses makes conversations at random, with turns of models behind the strict fakes
// of every API. Half of the turns break off, and end in each of the ways. The fakes refuse no request, and nothing of the
// responses is lost. PLAIT_LONG=1 makes more.
func TestRandomConversationsOutliveBrokenResponses(t *testing.T) {
	count, first := uint64(seedtest.Rounds(15, 2000)), seedtest.First(t)
	var apis []string
	for _, p := range providers {
		apis = append(apis, p.name)
	}

	f := newFakes(t)
	for name, d := range dialects(t) {
		t.Run(name, func(t *testing.T) {
			for seed := first; seed < first+count; seed++ {
				d.Model = func() providertest.Turn {
					f.begin(seed)
					return turn(f, apis, name, true)
				}
				if err := d.Try(seed); err != nil {
					t.Errorf("seed %d: %v", seed, err)
				}
			}
		})
	}
	t.Logf("%d conversations of each API from seed %d; parts were kept where %v", count, first, f.kept)
	require.NotEmpty(t, f.kept)
	if seedtest.Long() {
		require.Len(t, f.kept, len(ways), "each of the ways")
	}
}
