package openai

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
)

// TestChatNeverInvalid makes conversations at random, with good turns among what programs and crashes do to them, and asks of each
// that the strict fake of the API takes what would be sent: to OpenAI, where nothing of compatible servers is in it, and to one of
// those. PLAIT_SEED=n begins with another seed than 1, and PLAIT_LONG=1 makes many more.
func TestChatNeverInvalid(t *testing.T) {
	sequences, first := uint64(seedtest.Rounds(700, 40_000)), seedtest.First(t)
	workers := uint64(runtime.GOMAXPROCS(0))
	for n := range workers {
		t.Run(fmt.Sprintf("worker %d", n), func(t *testing.T) {
			t.Parallel()
			for seed := first + n; seed < first+sequences; seed += workers {
				w := newChatWorld(seed)
				req, o := w.request(), w.options()
				if err := sendableChat(o, req); err != nil {
					req, err = smallest(req, err, func(r api.Request) error { return sendableChat(o, r) })
					t.Fatalf("seed %d, %+v: %v\n%s", seed, *o, err, shown(req))
				}
			}
		})
	}
	t.Logf("%d conversations from seed %d", sequences, first)
}

// smallest leaves out messages and blocks as long as what is left still fails.
func smallest(req api.Request, failure error, try func(api.Request) error) (api.Request, error) {
	for again := true; again; {
		again = false
		for _, fewer := range fewerBlocks(req) {
			if err := try(fewer); err != nil {
				req, failure, again = fewer, err, true
				break
			}
		}
	}
	return req, failure
}

// sendableChat checks what would be sent.
func sendableChat(o *Options, req api.Request) error {
	const model = "gpt-audio-test"
	body, _, err := ChatBody(req, model, o)
	if errors.Is(err, api.ErrNothing) {
		return saysNothing(req)
	}
	if err != nil {
		return err
	}
	check := fake.CheckOpenAICompatible
	if o.OmitThinking { // and so is for OpenAI
		check = fake.CheckOpenAIChat
	}
	if err := check(body); err != nil {
		return fmt.Errorf("%w\nsent %s", err, body)
	}
	if len(body)%4 != 0 {
		return nil // often enough
	}
	fresh := req
	fresh.Messages = slices.Clone(req.Messages)
	for i, m := range fresh.Messages { // nothing is remembered with these
		fresh.Messages[i].Blocks = must(m.Blocks.Slice()...)
	}
	if again, _, _ := ChatBody(fresh, model, o); !bytes.Equal(body, again) {
		return fmt.Errorf("the same conversation gave other bytes:\n%s\n%s", body, again)
	}
	return keepsItsPrefix(chatSupport{thinking: true, endsOpen: true}.encoding(), req.Messages)
}

// TestContinuedChatKeepsItsBytes compares the requests of a conversation turn by turn: what was sent of settled messages is sent
// again, byte for byte.
func TestContinuedChatKeepsItsBytes(t *testing.T) {
	for seed := range uint64(200) {
		w := newChatWorld(seed)
		var messages []content.Message
		var before []byte
		for range 12 {
			messages = append(messages, w.goodTurn()...)
			body, _, err := ChatBody(api.Request{System: []string{"Be brief."}, Messages: messages}, "m", nil)
			requireThat(t, err == nil, "seed %d: %v", seed, err)
			if len(before) > 0 {
				front := before[:len(before)-len("]}")]
				requireThat(t, bytes.HasPrefix(body, front), "seed %d:\n%s\n%s", seed, before, body)
			}
			before = body
		}
	}
}

func requireThat(t *testing.T, ok bool, format string, args ...any) {
	t.Helper()
	if !ok {
		t.Fatalf(format, args...)
	}
}

// chatWorld makes conversations. What is the same for both APIs it takes from the other one's.
type chatWorld struct {
	*responsesWorld
	compatible bool // blocks of compatible servers may be there
}

func newChatWorld(seed uint64) *chatWorld {
	w := &chatWorld{responsesWorld: &responsesWorld{Rand: rand.New(rand.NewPCG(seed, 21))}}
	w.compatible = w.one(2)
	return w
}

func (w *chatWorld) options() *Options {
	o := &Options{OmitThinking: !w.compatible, NoStream: w.one(2), SystemRole: oneOf(w.responsesWorld, "", "", "developer", "user")}
	o.Body = oneOf(w.responsesWorld, content.JSON(""), "", `{"seed":7}`, `{"messages":[],"stream_options":{"include_usage":false}}`, `{"tool_choice":"required"}`,
		`{"tool_choice":{"type":"function","function":{"name":"f"}},"parallel_tool_calls":true}`, `{"max_completion_tokens":5}`, `{"store":true}`)
	return o
}

// request is a conversation of a few turns, with options.
func (w *chatWorld) request() api.Request {
	req := api.Request{System: []string{w.text()}, Options: w.wishes()}
	for range 1 + w.IntN(6) {
		req.Messages = append(req.Messages, w.turn()...)
	}
	for range w.IntN(4) {
		req.Messages = w.damaged(req.Messages)
	}
	for range w.IntN(4) {
		req.Tools = append(req.Tools, w.tool())
	}
	return req
}

// wishes is the options of a request.
func (w *chatWorld) wishes() api.Options {
	half := 0.5
	return api.Options{
		MaxTokens:     oneOf(w.responsesWorld, 0, 1, 500),
		Thinking:      oneOf(w.responsesWorld, "", api.ThinkOff, api.ThinkAuto, api.ThinkHigh, api.ThinkTokens(2000)),
		ToolChoice:    oneOf(w.responsesWorld, api.ToolsAuto, api.ToolsAny, api.ToolsNone, api.OneTool("f"), api.OneTool("run"), api.OneTool("absent")),
		Temperature:   oneOf(w.responsesWorld, nil, &half),
		StopSequences: oneOf(w.responsesWorld, nil, []string{"STOP"}, []string{"a", "b", "c", "d", "e"}),
		OneCall:       w.one(2),
		Cache:         oneOf(w.responsesWorld, api.CacheShort, api.CacheLong, api.CacheOff),
		Output: oneOf(w.responsesWorld, api.Schema{}, api.Schema{Name: "form", JSON: `{"type":"object","properties":{"a":{"type":"string"}}}`},
			api.Schema{Name: "form", JSON: `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`}),
	}
}

func (w *chatWorld) turn() []content.Message {
	switch w.IntN(8) {
	case 0, 1, 2:
		return w.goodTurn()
	case 3, 4, 5:
		return []content.Message{{Role: content.User, Blocks: must(w.blocks()...)}}
	case 6:
		return []content.Message{{Role: content.Assistant, Blocks: must(w.blocks()...)}}
	}
	return []content.Message{{Role: oneOf(w.responsesWorld, content.User, content.Role("system"), content.Assistant), Blocks: content.Words(w.text())}}
}

// goodTurn is a turn as a model has it, so that others have something to spoil.
func (w *chatWorld) goodTurn() []content.Message {
	turn := []content.Message{{Role: content.User, Blocks: content.Words("What is the weather?")}}
	for range w.IntN(3) {
		said := []content.Block{w.call(), w.call()}[w.IntN(2):]
		if w.compatible && w.one(2) {
			said = append([]content.Block{w.thinking()}, said...)
		}
		var results []content.Block
		for _, b := range said {
			if call, ok := b.(content.ToolUse); ok {
				results = append(results, content.ToolResult{CallID: call.ID, Content: must(w.inner()...), IsError: w.one(3)})
			}
		}
		turn = append(turn, content.Message{Role: content.Assistant, Blocks: must(said...)}, content.Message{Role: content.User, Blocks: must(results...)})
	}
	return append(turn, content.Message{Role: content.Assistant, Blocks: content.Words("It is warm.")})
}

func (w *chatWorld) call() content.Block {
	call := content.ToolUse{ID: w.id("call"), Name: "get_weather", Input: `{"city":"Tokyo"}`}
	switch {
	case w.one(4):
		call.Input, call.Extra = `"SELECT 1"`, content.Extra{API: ChatAPI, JSON: `{"type":"custom"}`}
	case w.compatible && w.one(4):
		call.Extra = content.Extra{API: ChatAPI, JSON: `{"extra_content":{"google":{"thought_signature":"c2ln"}}}`}
	}
	return call
}

func (w *chatWorld) thinking() content.Block {
	extra := oneOf(w.responsesWorld, content.JSON(`{"field":"reasoning_content"}`), `{"field":"reasoning","reasoning_details":[{"type":"reasoning.text","text":"x"}]}`,
		`{}`, `{"field":7}`, `{"field":"role"}`, `{"reasoning_details":[]}`, `{"field":"tool_calls","role":"system","content":7}`)
	return content.Thinking{Text: oneOf(w.responsesWorld, "Let me see.", "", " "), Extra: content.Extra{API: ChatAPI, JSON: extra}}
}

func (w *chatWorld) tool() content.Tool {
	switch w.IntN(8) {
	case 0:
		return content.Tool{Name: "run", Extra: content.Extra{API: ChatAPI, JSON: `{"type":"custom","custom":{"name":"run"}}`}}
	case 1:
		t := w.responsesWorld.tool()
		t.Extra = content.Extra{}
		return t
	}
	return w.responsesWorld.tool()
}

// inner is what a tool can return.
func (w *chatWorld) inner() []content.Block {
	var blocks []content.Block
	for range w.IntN(3) {
		blocks = append(blocks, oneOf[content.Block](w.responsesWorld, content.Text{Text: w.text()}, w.image(), w.document(), w.part(), content.Text{Text: "22°C"}))
	}
	return blocks
}

func (w *chatWorld) blocks() []content.Block {
	var blocks []content.Block
	for range w.IntN(5) {
		chat := func(j content.JSON) content.Extra { return content.Extra{API: ChatAPI, JSON: j} }
		blocks = append(blocks, oneOf[content.Block](w.responsesWorld,
			content.Text{Text: w.text()}, content.Text{Text: w.text(), Extra: content.Extra{API: "anthropic", JSON: `{"citations":[]}`}},
			content.Text{Text: w.text(), Extra: chat(`{"type":"refusal"}`)}, content.Text{Text: w.text(), Extra: chat(`{"annotations":[]}`)},
			content.Text{Text: w.text(), Extra: chat(`{"audio":{"id":"audio_1","transcript":"x"}}`)},
			w.image(), w.document(), w.part(), w.part(), w.opaque(), content.Unknown{JSON: `{"type":"hologram"}`},
			content.ToolUse{ID: w.anyID(), Name: w.name(), Input: w.input()},
			content.ToolUse{ID: w.anyID(), Name: w.name(), Input: w.input(), Extra: chat(`{"type":"custom","id":"x","custom":{"name":"y"}}`)},
			content.ToolResult{CallID: w.anyID(), Content: must(w.inner()...), IsError: w.one(2), Extra: oneOf(w.responsesWorld, content.Extra{}, chat(`{"name":"f"}`))},
			content.Thinking{Text: "unsigned"}, content.Thinking{Text: "x", Signature: "y", Extra: content.Extra{API: "anthropic", JSON: `{}`}}, w.thinking(), w.call(),
		))
	}
	return blocks
}

// part is a block of the API's own, or of another's.
func (w *chatWorld) part() content.Block {
	api := oneOf(w.responsesWorld, ChatAPI, ChatAPI, ChatAPI, "gemini")
	own := []content.JSON{
		`{"type":"text","text":""}`, `{"type":"text","text":"x"}`, `{"type":"text","text":7}`, `{"type":"image_url","image_url":{"url":"ftp://x"}}`,
		`{"type":"image_url"}`, `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + tinyPNG + `","detail":"low"}}`, `{"type":"file","file":{"file_id":"file_1"}}`,
		`{"type":"file","file":{}}`, `{"type":"input_audio","input_audio":{"data":"AAAA","format":"ogg"}}`, `{"type":"refusal","refusal":"no"}`,
		`{"type":7}`, `{}`, `{"role":"system","content":"x"}`, `{"tool_calls":[]}`,
	}
	if w.compatible {
		own = append(own, `{"mood":"good"}`, `{"mood":["x"],"role":"tool","tool_call_id":"z"}`)
	}
	return content.Opaque{API: api, JSON: oneOf(w.responsesWorld, own...)}
}
