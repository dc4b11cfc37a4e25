package openai

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/api/dialect"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
)

// TestResponsesNeverInvalid makes conversations at random, with good turns among what programs and crashes do to them, and asks of
// each that the strict fake of the API takes what would be sent. PLAIT_SEED=n begins with another seed than 1, and PLAIT_LONG=1
// makes many more.
func TestResponsesNeverInvalid(t *testing.T) {
	sequences, first := uint64(seedtest.Rounds(700, 40_000)), seedtest.First(t)
	workers := uint64(runtime.GOMAXPROCS(0))
	for n := range workers {
		t.Run(fmt.Sprintf("worker %d", n), func(t *testing.T) {
			t.Parallel()
			for seed := first + n; seed < first+sequences; seed += workers {
				w := &responsesWorld{Rand: rand.New(rand.NewPCG(seed, 11))}
				req := w.request()
				w.Rand = rand.New(rand.NewPCG(seed, 12)) // as in shrunk
				if err := w.sendable(req); err != nil {
					req, err = shrunk(seed, req, err)
					t.Fatalf("seed %d: %v\n%s", seed, err, shown(req))
				}
			}
		})
	}
	t.Logf("%d conversations from seed %d", sequences, first)
}

// shrunk leaves out messages and blocks as long as what is left still fails.
func shrunk(seed uint64, req api.Request, failure error) (api.Request, error) {
	for again := true; again; {
		again = false
		for _, fewer := range fewerBlocks(req) {
			w := &responsesWorld{Rand: rand.New(rand.NewPCG(seed, 12))}
			if err := w.sendable(fewer); err != nil {
				req, failure, again = fewer, err, true
				break
			}
		}
	}
	return req, failure
}

// fewerBlocks is the requests with one block less.
func fewerBlocks(req api.Request) []api.Request {
	var all []api.Request
	for i, m := range req.Messages {
		without := req
		without.Messages = slices.Delete(slices.Clone(req.Messages), i, i+1)
		all = append(all, without)
		for j := range m.Blocks.Len() {
			less := req
			less.Messages = slices.Clone(req.Messages)
			less.Messages[i].Blocks = must(slices.Delete(m.Blocks.Slice(), j, j+1)...)
			all = append(all, less)
		}
	}
	return all
}

func shown(req api.Request) string {
	var said strings.Builder
	for _, m := range req.Messages {
		fmt.Fprintf(&said, "%s %s\n", m.Role, m.Blocks.Append(nil))
	}
	return said.String()
}

// responsesWorld makes conversations.
type responsesWorld struct {
	*rand.Rand
	ids int
}

// sendable checks what would be sent.
func (w *responsesWorld) sendable(req api.Request) error {
	model, o := oneOf(w, "gpt-test", "gpt-test", "gpt-4o"), oneOf(w, nil, &Options{Options: api.Options{Body: `{"store":true}`}})
	if err := sendableTo(model, o, req); err != nil {
		return fmt.Errorf("%s with %v: %w", model, o, err)
	}
	if !w.one(4) {
		return nil
	}
	if err := sameAgain(model, o, req); err != nil {
		return err
	}
	kept := responsesSupport{keeping: oneOf(w, keepSealed, keepAll, keepNone, keepOpen)}
	return keepsItsPrefix(responsesEncodings.Get(kept, responsesSupport.encoding), req.Messages)
}

func sendableTo(model string, o *Options, req api.Request) error {
	body, _, err := ResponsesBody(req, model, o)
	if errors.Is(err, api.ErrNothing) {
		return saysNothing(req)
	}
	if err != nil {
		return err
	}
	if err := fake.CheckOpenAIResponses(body); err != nil {
		return fmt.Errorf("%w\nsent %s", err, body)
	}
	return nil
}

// sameAgain makes sure that the bytes are the same where nothing is remembered of the conversation.
func sameAgain(model string, o *Options, req api.Request) error {
	body, _, _ := ResponsesBody(req, model, o)
	for i, m := range req.Messages { // nothing is remembered with these
		req.Messages[i].Blocks = must(m.Blocks.Slice()...)
	}
	if again, _, _ := ResponsesBody(req, model, o); !bytes.Equal(body, again) {
		return fmt.Errorf("the same conversation gave other bytes:\n%s\n%s", body, again)
	}
	return nil
}

// saysNothing makes sure that a conversation that is not sent at all says nothing that could be.
func saysNothing(req api.Request) error {
	for _, m := range req.Messages {
		if len(m.Blocks.ToolUses()) > 0 || strings.TrimSpace(m.Blocks.Text()) != "" {
			return errors.New("a conversation that says something is not sent")
		}
	}
	return nil
}

// keepsItsPrefix makes sure that repairing is idempotent, and that a conversation that goes on is sent with the beginning that was
// sent before. Its last message may have grown, and the answers before that may have come.
func keepsItsPrefix(e *dialect.Encoding, messages []content.Message) error {
	once := e.Encode(messages).Messages()
	twice, notes := dialect.Repair(once, e.Rules)
	if len(notes) > 0 || !slices.EqualFunc(once, twice, equalMessages) {
		return fmt.Errorf("repaired again: %v", notes)
	}
	longer := e.Encode(append(slices.Clone(messages),
		content.Message{Role: content.Assistant, Blocks: content.Words("x")}, content.Message{Role: content.User, Blocks: content.Words("y")})).Messages()
	for i := range len(once) - 2 {
		if !equalMessages(once[i], longer[i]) {
			return fmt.Errorf("message %d of %d was another before the conversation went on:\n%s\n%s", i, len(once),
				once[i].Blocks.Append(nil), longer[i].Blocks.Append(nil))
		}
	}
	return nil
}

func equalMessages(a, b content.Message) bool { return a.Role == b.Role && a.Blocks.Equal(b.Blocks) }

// one is true once in n times.
func (w *responsesWorld) one(n int) bool { return w.IntN(n) == 0 }

func oneOf[T any](w *responsesWorld, from ...T) T { return from[w.IntN(len(from))] }

// request is a conversation of a few turns, with options.
func (w *responsesWorld) request() api.Request {
	var req api.Request
	for range 1 + w.IntN(6) {
		req.Messages = append(req.Messages, w.turn()...)
	}
	for range w.IntN(4) {
		req.Messages = w.damaged(req.Messages)
	}
	for range w.IntN(4) {
		req.Tools = append(req.Tools, w.tool())
		req.System = append(req.System, w.text())
	}
	req.Options = api.Options{
		MaxTokens: oneOf(w, 0, 0, 1, 500), Thinking: oneOf(w, "", api.ThinkOff, api.ThinkAuto, api.ThinkHigh, api.ThinkTokens(2000)),
		ToolChoice: oneOf(w, api.ToolsAuto, api.ToolsAny, api.ToolsNone, api.OneTool("f"), api.OneTool("search"), api.OneTool("absent")),
		OneCall:    w.one(2), Cache: oneOf(w, api.CacheShort, api.CacheLong, api.CacheOff),
		Body: oneOf(w, content.JSON(""), "", `{"text":{"verbosity":"low"}}`, `{"reasoning":{"summary":"detailed"}}`, `{"input":"x","previous_response_id":"resp_1"}`),
	}
	if w.one(4) {
		req.Options.Output = oneOf(w, api.Schema{Name: "form", JSON: `{"type":"object","properties":{"a":{"type":"string"}}}`},
			api.Schema{Name: "form", JSON: `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`})
	}
	if w.one(4) {
		half := 0.5
		req.Options.Temperature, req.Options.StopSequences = &half, []string{"STOP"}
	}
	return req
}

// turn is one or more messages.
func (w *responsesWorld) turn() []content.Message {
	switch w.IntN(8) {
	case 0, 1, 2:
		return w.goodTurn()
	case 3:
		return w.serverTurn()
	case 4, 5:
		return []content.Message{{Role: content.User, Blocks: must(w.blocks()...)}}
	case 6:
		return []content.Message{{Role: content.Assistant, Blocks: must(w.blocks()...)}}
	}
	return []content.Message{{Role: oneOf(w, content.User, content.Role("system"), content.Assistant), Blocks: content.Words(w.text())}}
}

// id is a new id with the prefix that its item wants.
func (w *responsesWorld) id(prefix string) string {
	w.ids++
	return fmt.Sprintf("%s_%d", prefix, w.ids)
}

// itemBlocks is what the API's items say.
func itemBlocks(items ...string) []content.Block {
	var d itemDecoder
	var all []content.Block
	for _, item := range items {
		blocks, err := d.blocks(content.JSON(item))
		if err != nil {
			panic(err)
		}
		all = append(all, blocks...)
	}
	return all
}

func (w *responsesWorld) reasoning() string {
	summary := oneOf(w, `[]`, `[{"type":"summary_text","text":"Hm."}]`, `[{"type":"summary_text","text":"One."},{"type":"summary_text","text":"Two."}]`)
	sealed := oneOf(w, `,"encrypted_content":"c2VhbGVk"`, `,"encrypted_content":"c2VhbGVk"`, `,"encrypted_content":null`, "")
	id := oneOf(w, `,"id":"`+w.id("rs")+`"`, `,"id":"`+w.id("rs")+`"`, "")
	return `{"type":"reasoning","summary":` + summary + id + sealed + "}"
}

func (w *responsesWorld) message() string {
	parts := oneOf(w, `{"type":"output_text","text":"It rains.","annotations":[],"logprobs":[]}`,
		`{"type":"output_text","text":"It ","annotations":[]},{"type":"output_text","text":"rains.","annotations":[]}`, `{"type":"refusal","refusal":"No."}`,
		`{"type":"output_text","text":"","annotations":[]}`)
	return `{"type":"message","id":"` + w.id("msg") + `","role":"assistant","status":"completed","content":[` + parts + `]}`
}

func (w *responsesWorld) call() string {
	if w.one(4) {
		return fmt.Sprintf(`{"type":"custom_tool_call","id":%q,"call_id":%q,"name":"run","input":"x = 1","status":"completed"}`, w.id("ctc"), w.id("call"))
	}
	return fmt.Sprintf(`{"type":"function_call","id":%q,"call_id":%q,"name":"f","arguments":"{\"city\":\"Tokyo\"}","status":"completed"}`, w.id("fc"), w.id("call"))
}

// goodTurn is a turn as a model has it, so that the rest has something to spoil.
func (w *responsesWorld) goodTurn() []content.Message {
	turn := []content.Message{{Role: content.User, Blocks: content.Words("What is the weather?")}}
	for range w.IntN(3) {
		items := []string{w.reasoning(), w.call()}[w.IntN(2):]
		if w.one(2) {
			items = append(items, w.call())
		}
		blocks := must(itemBlocks(items...)...)
		var results []content.Block
		for _, call := range blocks.ToolUses() {
			results = append(results, content.ToolResult{CallID: call.ID, Content: must(w.inner()...), IsError: w.one(3)})
		}
		turn = append(turn, content.Message{Role: content.Assistant, Blocks: blocks}, content.Message{Role: content.User, Blocks: must(results...)})
	}
	return append(turn, content.Message{Role: content.Assistant, Blocks: must(itemBlocks([]string{w.reasoning(), w.message()}[w.IntN(2):]...)...)})
}

// serverTurn is a turn in which tools of the API's own ran, some of which a program answers.
func (w *responsesWorld) serverTurn() []content.Message {
	id, call := w.id("x"), w.id("call")
	asked := oneOf(w, `{"type":"web_search_call","id":"ws_`+id+`","status":"completed","action":{"type":"search","query":"x"}}`,
		`{"type":"computer_call","id":"cu_`+id+`","call_id":"`+call+`","action":{"type":"click"}}`,
		`{"type":"local_shell_call","id":"lsh_`+id+`","call_id":"`+call+`","action":{}}`,
		`{"type":"shell_call","id":"sh_`+id+`","call_id":"`+call+`","action":{}}`,
		`{"type":"mcp_approval_request","id":"mcpr_`+id+`","name":"n","server_label":"s","arguments":"{}"}`,
		`{"type":"tool_search_call","id":"tsc_`+id+`","call_id":null,"arguments":{},"execution":"server"}`)
	answer := content.Opaque{API: ResponsesAPI, JSON: content.JSON(oneOf(w, `{"type":"computer_call_output","call_id":"`+call+`","output":{}}`,
		`{"type":"shell_call_output","call_id":"`+call+`","output":[]}`, `{"type":"local_shell_call_output","call_id":"`+call+`","output":""}`,
		`{"type":"mcp_approval_response","approval_request_id":"mcpr_`+id+`","approve":true}`))}
	blocks := itemBlocks([]string{w.reasoning(), asked, w.reasoning(), w.message()}[w.IntN(2) : 2+w.IntN(3)]...)
	return []content.Message{
		{Role: content.User, Blocks: content.Words("Search.")}, {Role: content.Assistant, Blocks: must(blocks...)},
		{Role: content.User, Blocks: must(oneOf[content.Block](w, answer, answer, content.Text{Text: "Well?"}))},
	}
}

// damaged is the conversation after what programs and crashes do to one.
func (w *responsesWorld) damaged(messages []content.Message) []content.Message {
	messages = slices.Clone(messages)
	i := w.IntN(len(messages))
	switch m := messages[i]; w.IntN(4) {
	case 0:
		if len(messages) > 1 {
			messages = slices.Delete(messages, i, i+1)
		}
	case 1:
		if n := m.Blocks.Len(); n > 0 {
			j := w.IntN(n)
			messages[i].Blocks = must(slices.Delete(m.Blocks.Slice(), j, j+1)...)
		}
	case 2:
		blocks := m.Blocks.Slice()
		w.Shuffle(len(blocks), func(a, b int) { blocks[a], blocks[b] = blocks[b], blocks[a] })
		messages[i].Blocks = must(blocks...)
	case 3:
		messages = messages[:i+1]
	}
	return messages
}

// What is said.

func (w *responsesWorld) text() string {
	return oneOf(w, "Hello.", "Was wäre, wenn …?", "", " ", "\n\t", "\u200b", "a\x00b", "\xff\xfe", "{\"x\":1}", "  x  ", "x\n")
}

func (w *responsesWorld) anyID() string {
	return oneOf(w, "a", "b", "", "toolu_01", "call_1", "call_2", "id with space", "ü", strings.Repeat("x", 80))
}

func (w *responsesWorld) name() string {
	return oneOf(w, "f", "get_weather", "", "a b", "ünï", "mcp.server/tool", strings.Repeat("n", 70), "<script>")
}

func (w *responsesWorld) input() content.JSON {
	return oneOf(w, content.JSON(`{}`), `{"city":"Tokyo"}`, ` { "a" : 1 } `, "", `{"city":"To`, `[1,2]`, `"x"`, `null`, `{"a":1,"a":2}`, "\x00", `{"a":"\ud800"}`)
}

func (w *responsesWorld) tool() content.Tool {
	schema := oneOf(w, content.JSON(`{"type":"object","properties":{"city":{"type":"string"}}}`), `{"type":"object"}`, `{"type":"object","properties":{}}`,
		`{"type":"object","anyOf":[{"required":["a"]}]}`, `{"type":"string"}`, `true`, ``, `{`)
	t := content.Tool{Name: oneOf(w, "f", "get_weather", strings.Repeat("n", 64), "bad name"), Description: w.text(), Schema: schema}
	switch w.IntN(8) {
	case 0:
		return content.Tool{Name: "search", Extra: content.Extra{API: ResponsesAPI, JSON: `{"type":"web_search"}`}}
	case 1:
		t.Extra = content.Extra{API: ResponsesAPI, JSON: `{"type":"custom","format":{"type":"text"}}`}
	case 2:
		return content.Tool{Name: "other", Extra: content.Extra{API: "anthropic", JSON: `{"type":"web_search_20250305","name":"web_search"}`}}
	}
	return t
}

// inner is what a tool can return.
func (w *responsesWorld) inner() []content.Block {
	var blocks []content.Block
	for range w.IntN(3) {
		blocks = append(blocks, oneOf[content.Block](w, content.Text{Text: w.text()}, w.image(), w.document(), w.opaque(), content.Text{Text: "22°C"}))
	}
	return blocks
}

func (w *responsesWorld) blocks() []content.Block {
	var blocks []content.Block
	for range w.IntN(5) {
		blocks = append(blocks, oneOf[content.Block](w,
			content.Text{Text: w.text()}, content.Text{Text: w.text(), Extra: content.Extra{API: "anthropic", JSON: `{"citations":[]}`}}, w.image(), w.document(),
			w.opaque(), content.Unknown{JSON: `{"type":"hologram"}`}, content.ToolUse{ID: w.anyID(), Name: w.name(), Input: w.input()},
			content.ToolUse{ID: w.anyID(), Name: w.name(), Input: w.input(), Extra: content.Extra{API: ResponsesAPI, JSON: `{"type":"custom_tool_call"}`}},
			content.ToolResult{CallID: w.anyID(), Content: must(w.inner()...), IsError: w.one(2)},
			content.Thinking{Text: "unsigned"}, content.Thinking{Text: "x", Signature: "y", Extra: content.Extra{API: "anthropic", JSON: `{}`}},
			content.Thinking{Signature: "c2lnbmVk"}, itemBlocks(w.reasoning())[0], itemBlocks(w.message())[0], itemBlocks(w.call())[0],
			content.Text{Text: "x", Extra: content.Extra{API: ResponsesAPI, JSON: `{"plait":{"item":7,"part":"x","after":3}}`}},
		))
	}
	return blocks
}

const tinyPNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

func (w *responsesWorld) image() content.Block {
	return content.Image{Source: oneOf(w,
		content.Source{MediaType: "image/png", Data: tinyPNG}, content.Source{MediaType: "image/jpeg", Data: tinyPNG},
		content.Source{MediaType: "image/png", Data: "not base64!"}, content.Source{MediaType: "image/bmp", Data: "Qk0AAAAA"},
		content.Source{URL: "https://example.com/x.png"}, content.Source{URL: "data:image/png;base64," + tinyPNG}, content.Source{FileID: "file_1"},
	), Extra: oneOf(w, content.Extra{}, content.Extra{API: ResponsesAPI, JSON: `{"detail":"low"}`})}
}

func (w *responsesWorld) document() content.Block {
	return content.Document{Title: w.text(), Source: oneOf(w,
		content.Source{MediaType: "application/pdf", Data: "JVBERi0xLjcK"}, content.Source{MediaType: "application/pdf", Data: "AAAA"},
		content.Source{MediaType: "text/plain", Text: "words"}, content.Source{Text: " "}, content.Source{MediaType: "text/csv", Data: "YSxiCg=="},
		content.Source{URL: "https://example.com/x.pdf"}, content.Source{URL: "ftp://example.com/x.pdf"}, content.Source{FileID: "file_2"},
		content.Source{MediaType: "audio/wav", Data: "UklGRg=="},
	)}
}

func (w *responsesWorld) opaque() content.Block {
	id := w.id("x")
	return content.Opaque{API: oneOf(w, ResponsesAPI, ResponsesAPI, ResponsesAPI, "gemini"), JSON: oneOf(w,
		content.JSON(`{"type":"web_search_call","id":"ws_`+id+`","status":"completed","action":{"type":"search","query":"x"}}`),
		`{"type":"computer_call","id":"cu_1","call_id":"call_1","action":{"type":"click"}}`, `{"type":"computer_call_output","call_id":"call_1","output":{}}`,
		`{"type":"apply_patch_call","id":"apc_1","call_id":"call_2","operation":{}}`, `{"type":"shell_call_output","call_id":"call_2","output":[]}`,
		`{"type":"mcp_list_tools","id":"mcpl_1","server_label":"s","tools":[]}`, content.JSON(`{"type":"compaction","encrypted_content":"x","id":"cmp_`+id+`"}`),
		`{"type":"function_call","call_id":"z","name":"f","arguments":"{}"}`, `{"type":"function_call_output","call_id":"z","output":""}`,
		`{"type":"reasoning","summary":[]}`, `{"type":"message","role":"developer","content":"Be brief."}`,
		`{"type":"message","role":"assistant","content":[]}`, `{"type":"input_text","text":"x"}`, `{"type":"additional_tools","tools":[]}`, `{}`, `{"type":7}`,
	)}
}
