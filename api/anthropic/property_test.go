package anthropic

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

// TestNeverInvalid builds, forks, cuts, joins and loads conversations at random, and asks of each that the strict fake of the API
// takes what would be sent. PLAIT_SEED=n begins with another seed than 1; a failure prints the shortest list of steps found that
// still fails.
func TestNeverInvalid(t *testing.T) {
	sequences, first := 100_000, 1
	if testing.Short() {
		sequences /= 20
	}
	if raceDetector {
		sequences /= 5
	}
	if s, err := strconv.Atoi(os.Getenv("PLAIT_SEED")); err == nil {
		first = s
	}
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		t.Run(fmt.Sprintf("worker %d", w), func(t *testing.T) {
			t.Parallel()
			for seed := first + w; seed < first+sequences; seed += workers {
				steps := randomSteps(uint64(seed))
				if err := play(steps, nil); err != nil {
					steps, err = shrink(steps, err)
					var told strings.Builder
					_ = play(steps, &told)
					t.Fatalf("seed %d: %v\n%s", seed, err, told.String())
				}
			}
		})
	}
	t.Logf("%d sequences from seed %d", sequences, first)
}

// step is one operation. Its seed decides on everything about it, so that it does the same when other steps are left out.
type step struct {
	op   int
	seed uint64
}

func randomSteps(seed uint64) []step {
	r := rand.New(rand.NewPCG(seed, 7))
	steps := make([]step, 2+r.IntN(11))
	for i := range steps {
		steps[i] = step{op: r.IntN(len(operations)), seed: r.Uint64()}
	}
	return steps
}

// shrink leaves out steps as long as what is left still fails.
func shrink(steps []step, failure error) ([]step, error) {
	for again := true; again; {
		again = false
		for i := range steps {
			fewer := append(append([]step(nil), steps[:i]...), steps[i+1:]...)
			if err := play(fewer, nil); err != nil {
				steps, failure, again = fewer, err, true
				break
			}
		}
	}
	return steps, failure
}

// world is what the steps work on: the conversation at hand, and others that were forked from it.
type world struct {
	*rand.Rand
	d     dag.DAG
	forks []dag.DAG
	told  *strings.Builder
}

func (w *world) tell(format string, args ...any) {
	if w.told != nil {
		fmt.Fprintf(w.told, format+"\n", args...)
	}
}

// play does the steps and returns an error when a conversation on the way cannot be sent.
func play(steps []step, told *strings.Builder) (failure error) {
	defer func() {
		if p := recover(); p != nil {
			failure = fmt.Errorf("panic: %v", p)
		}
	}()
	w := &world{d: dag.New().WithSource(node.Counting(time.Unix(1_800_000_000, 0))), told: told}
	for i, s := range steps {
		w.Rand = rand.New(rand.NewPCG(s.seed, 1))
		op := operations[s.op]
		w.tell("%d. %s", i+1, op.name)
		if next := op.do(w); next.Err() == nil {
			w.d = next // a step that was refused changes nothing
		} else {
			w.tell("   refused: %v", next.Err())
		}
		if i < len(steps)-1 && !w.one(4) {
			continue // most of what is on the way is the end of a shorter sequence
		}
		if err := sendable(w); err != nil {
			return fmt.Errorf("after step %d: %w", i+1, err)
		}
	}
	return nil
}

// sendable checks what would be sent of the conversation at hand.
func sendable(w *world) error {
	t := w.d.Transcript()
	req := api.Request{System: t.System, Tools: t.Tools, Messages: t.Messages}
	o := w.options()
	body, _, err := Body(req, "claude-test", o)
	if errors.Is(err, api.ErrNothing) {
		return saysNothing(req)
	}
	if err != nil {
		return err
	}
	if err := apitest.CheckAnthropic(body); err != nil {
		w.tell("options %+v\nsent %s", *o, body)
		return err
	}
	if !w.one(6) {
		return nil
	}
	again, _, err := Body(req, "claude-test", o)
	if err != nil || !bytes.Equal(body, again) {
		return fmt.Errorf("the same conversation gave other bytes (%v):\n%s\n%s", err, body, again)
	}
	if err := prefixKept(req); err != nil {
		return err
	}
	return idempotent(req, o.Prefill)
}

// prefixKept makes sure that a conversation that goes on is sent with the beginning that was sent before, so that prompt caches
// and signatures hold. Its last message may have grown, and the answers before that may have come.
func prefixKept(req api.Request) error {
	once, _ := repair(req.Messages, false)
	waiting := map[place]string{}
	unpaired(append(once[:len(once):len(once)], content.Message{Role: content.User, Blocks: content.Words("x")}), waiting)
	if len(waiting) > 0 {
		return nil // a server tool's call that waits is left out when the user speaks before its result came
	}
	longer, _ := repair(append(req.Messages[:len(req.Messages):len(req.Messages)],
		content.Message{Role: content.Assistant, Blocks: content.Words("x")}, content.Message{Role: content.User, Blocks: content.Words("y")}), false)
	for i := range len(once) - 2 {
		if once[i].Role != longer[i].Role || !once[i].Blocks.Equal(longer[i].Blocks) {
			return fmt.Errorf("message %d of %d was another before the conversation went on:\n%s\n%s", i, len(once), once[i].Blocks.Append(nil), longer[i].Blocks.Append(nil))
		}
	}
	return nil
}

// saysNothing makes sure that a conversation that is not sent at all says nothing that could be.
func saysNothing(req api.Request) error {
	for _, m := range req.Messages {
		if len(m.Blocks.ToolUses()) > 0 || !blank(m.Blocks.Text()) {
			return errors.New("a conversation that says something is not sent")
		}
	}
	return nil
}

func idempotent(req api.Request, prefill bool) error {
	once, _ := repair(req.Messages, prefill)
	twice, notes := repair(once, prefill)
	if len(notes) > 0 {
		return fmt.Errorf("repaired again: %v", notes)
	}
	if len(once) != len(twice) {
		return fmt.Errorf("%d messages became %d", len(once), len(twice))
	}
	for i := range once {
		if once[i].Role != twice[i].Role || !once[i].Blocks.Equal(twice[i].Blocks) {
			return fmt.Errorf("message %d was repaired again", i)
		}
	}
	return nil
}

// options are those a program can have, but for Prefill: only older models take that.
func (w *world) options() *Options {
	o := &Options{
		Thinking: pick(w, 0, Adaptive, 1024, 5000),
		Cache:    pick(w, CacheShort, CacheLong, CacheOff),
		NoStream: w.one(2),
		Body:     pick(w, content.JSON(""), "", `{"tool_choice":{"type":"auto"}}`, `{"metadata":{"user_id":"u"}}`),
	}
	if w.one(4) {
		half := 0.5
		o.Temperature = &half
	}
	if w.one(4) {
		o.StopSequences = []string{"STOP", " "}
	}
	return o
}

// one is true once in n times.
func (w *world) one(n int) bool { return w.IntN(n) == 0 }

func pick[T any](w *world, from ...T) T { return from[w.IntN(len(from))] }

// operations are what a program, or a crash, can do to a conversation.
var operations = []struct {
	name string
	do   func(w *world) dag.DAG
}{
	{"system", func(w *world) dag.DAG { return w.d.System(w.text()) }},
	{"tools", func(w *world) dag.DAG { return w.d.Tools(w.tool(), w.tool()) }},
	{"a good turn", goodTurn},
	{"a good turn", goodTurn},
	{"a server tool's turn", serverTurn},
	{"user", func(w *world) dag.DAG { return w.d.User(w.text(), w.blocks(content.User)...) }},
	{"user", func(w *world) dag.DAG { return w.d.User("Go on, then.") }},
	{"assistant", func(w *world) dag.DAG { return w.d.Assistant(w.text(), w.blocks(content.Assistant)...) }},
	{"assistant", func(w *world) dag.DAG { return w.d.Assistant("", w.blocks(content.Assistant)...) }},
	{"user marks much for the cache", func(w *world) dag.DAG {
		return w.d.User("", w.marked(), w.marked(), w.marked(), w.marked(), w.marked())
	}},
	{"assistant thinks and calls", func(w *world) dag.DAG { return w.d.Assistant("", append([]content.Block{signed}, w.calls()...)...) }},
	{"assistant calls", func(w *world) dag.DAG { return w.d.Assistant("", w.calls()...) }},
	{"results by hand", func(w *world) dag.DAG { return w.d.ToolResults(w.results()...) }},
	{"results beside words", func(w *world) dag.DAG { return w.d.User(w.text(), w.resultBlocks()...) }},
	{"close the tool phase", closeTools},
	{"close the tool phase", closeTools},
	{"execute half of the tool phase", executeHalf},
	{"execute at any node", executeAnywhere},
	{"fork", func(w *world) dag.DAG { w.forks = append(w.forks, w.d); return w.d }},
	{"switch to a fork", switchFork},
	{"join a fork", joinFork},
	{"back", func(w *world) dag.DAG { return w.d.Back(1 + w.IntN(3)) }},
	{"at any node", atAny},
	{"any heads", anyHeads},
	{"append after any nodes", appendAnywhere},
	{"compact any nodes", compactAnything},
	{"save and load", saveAndLoad},
	{"stop", func(w *world) dag.DAG { return w.d.Stop(content.StopCancelled) }},
	{"custom", func(w *world) dag.DAG { return w.d.Custom("test.note", 1) }},
	{"sub-graph", func(w *world) dag.DAG { return w.d.SubGraph("sub", dag.New().User("x").Assistant("y")) }},
}

// goodTurn is a turn as a model has it, so that the other steps have something to spoil.
func goodTurn(w *world) dag.DAG {
	d := w.d.User("What is the weather?")
	for range 1 + w.IntN(2) {
		n := d.Len() // makes ids that are not used before
		said := []content.Block{
			content.ToolUse{ID: fmt.Sprintf("toolu_%d_1", n), Name: "get_weather", Input: `{"city":"Tokyo"}`},
			content.ToolUse{ID: fmt.Sprintf("toolu_%d_2", n), Name: "get_weather", Input: `{"city":"Paris"}`},
		}
		if w.one(2) {
			said = append([]content.Block{signed}, said...)
		}
		d = d.Assistant("", said...).CloseTools(node.ToolExecution{Index: 0, Result: content.Words("22°C")}, node.ToolExecution{Index: 1, Result: content.Words("18°C")})
	}
	if w.one(2) {
		d = d.Assistant("It is warm.")
	}
	return d
}

// serverTurn is a turn in which a tool of the API's own ran, perhaps one that was paused or cut off.
func serverTurn(w *world) dag.DAG {
	id := pick(w, "srvtoolu_1", "srvtoolu_2", "srvtoolu_3")
	said := []content.Block{
		content.Opaque{API: API, JSON: content.JSON(`{"type":"server_tool_use","id":"` + id + `","name":"web_search","input":{"q":"x"}}`)},
		content.Opaque{API: API, JSON: content.JSON(`{"type":"web_search_tool_result","tool_use_id":"` + id + `","content":[]}`)},
		content.Text{Text: "Found it."},
	}[:1+w.IntN(3)]
	if w.one(3) {
		said = append(said, w.calls()...)
	}
	return w.d.User("Search.").Assistant("", said...)
}

func closeTools(w *world) dag.DAG {
	var done []node.ToolExecution
	for _, call := range w.d.OpenCalls() {
		if w.one(3) {
			continue
		}
		result, _ := content.Of(w.inner()...)
		done = append(done, node.ToolExecution{Index: call.Index, Result: result, IsError: w.one(3)})
	}
	return w.d.CloseTools(done...)
}

func executeHalf(w *world) dag.DAG {
	d := w.d
	said := d.Head()
	for _, call := range d.OpenCalls() {
		if said == nil || w.one(2) {
			continue
		}
		result, _ := content.Of(w.inner()...)
		d, _, _ = d.AppendTo([]*node.Node{said}, node.ToolExecution{CallID: call.ID, Index: call.Index, Tool: call.Name, Result: result})
	}
	return d
}

func executeAnywhere(w *world) dag.DAG {
	nodes := w.d.Nodes()
	if len(nodes) == 0 {
		return w.d
	}
	d, _, _ := w.d.AppendTo([]*node.Node{pick(w, nodes...)}, node.ToolExecution{CallID: w.id(), Index: w.IntN(3), Tool: w.name()})
	return d
}

func switchFork(w *world) dag.DAG {
	if len(w.forks) == 0 {
		return w.d
	}
	i := w.IntN(len(w.forks))
	other := w.forks[i]
	w.forks[i] = w.d
	return other
}

func joinFork(w *world) dag.DAG {
	if len(w.forks) == 0 {
		return w.d
	}
	return w.d.Join(pick(w, w.forks...))
}

func atAny(w *world) dag.DAG {
	if nodes := w.d.Nodes(); len(nodes) > 0 {
		return w.d.At(pick(w, nodes...).ID())
	}
	return w.d
}

// some returns up to three nodes of the conversation, in any order.
func (w *world) some() []*node.Node {
	nodes := w.d.Nodes()
	if len(nodes) == 0 {
		return nil
	}
	return []*node.Node{pick(w, nodes...), pick(w, nodes...), pick(w, nodes...)}[:1+w.IntN(3)]
}

func anyHeads(w *world) dag.DAG { return w.d.WithHeads(w.some()...) }

func appendAnywhere(w *world) dag.DAG {
	role := pick(w, content.User, content.Assistant)
	blocks, err := content.Of(w.blocks(role)...)
	if err != nil {
		return w.d
	}
	d, _, _ := w.d.AppendTo(w.some(), node.Message{Role: role, Blocks: blocks})
	return d
}

func compactAnything(w *world) dag.DAG {
	var ids []node.ID
	for _, n := range w.d.Nodes() {
		if w.one(2) {
			ids = append(ids, n.ID())
		}
	}
	summary := content.Words(w.text())
	d := w.d
	if w.one(2) {
		d = d.WithHeads(w.some()...)
	}
	return d.Append(node.Compaction{Summary: summary, Replaced: node.ListOf(ids...)})
}

// saveAndLoad goes through a file's bytes. The source of ids is kept, so that steps go on as they did.
func saveAndLoad(w *world) dag.DAG {
	var file bytes.Buffer
	if err := w.d.Write(&file); err != nil {
		panic(err)
	}
	loaded, err := dag.Read(&file)
	if err != nil {
		panic(err)
	}
	return loaded.WithSource(w.d.Source())
}

// What is said.

const onePNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

var signed = content.Thinking{Text: "Let me see.", Signature: "c2lnbmVk"}

func (w *world) text() string {
	return pick(w, "Hello.", "Was wäre, wenn …?", "", " ", "\n\t", "\u00a0", "\u200b", "a\x00b", "\xff\xfe", "{\"x\":1}", "  x  ", "x\n")
}

func (w *world) id() string {
	return pick(w, "a", "a", "b", "c", "", "toolu_01", "call_1", "call_2", "call_3", "id with space", "ü", strings.Repeat("x", 80), "srvtoolu_1")
}

func (w *world) name() string {
	return pick(w, "f", "g", "get_weather", "", "a b", "ünï", "mcp.server/tool", strings.Repeat("n", 70), strings.Repeat("n", 200), "<script>")
}

func (w *world) input() content.JSON {
	return pick(w, content.JSON(`{}`), `{"city":"Tokyo"}`, ` { "a" : 1 } `, "", `{"city":"To`, `[1,2]`, `"x"`, `null`, `{"a":1,"a":2}`, "\x00", `{"a":"\ud800"}`,
		content.JSON(strings.Repeat(`{"a":`, 300)+"1"+strings.Repeat("}", 300)))
}

func (w *world) schema() content.JSON {
	if !w.one(4) {
		return `{"type":"object","properties":{"city":{"type":"string"}}}`
	}
	return pick(w, content.JSON(`{"type":"object"}`), `{"type":"object","anyOf":[{"required":["a"]}]}`,
		`{"type":"object","properties":{"a b":{}}}`, `{"type":"string"}`, `true`, ``, `{`)
}

func (w *world) tool() content.Tool {
	t := content.Tool{Name: pick(w, "f", "g", "get_weather", "h1", strings.Repeat("n", 64), "bad name"), Description: w.text(), Schema: w.schema()}
	switch w.IntN(8) {
	case 0:
		t.Extra = content.Extra{API: API, JSON: `{"cache_control":{"type":"ephemeral"}}`}
	case 1:
		t.Extra = content.Extra{API: API, JSON: `{"type":"web_search_20250305","name":"web_search","max_uses":1}`}
		t.Schema = ""
	case 2:
		t.Extra = content.Extra{API: "openai-responses", JSON: `{"type":"web_search"}`}
		t.Schema = ""
	}
	return t
}

func (w *world) calls() []content.Block {
	calls := make([]content.Block, 1+w.IntN(3))
	for i := range calls {
		calls[i] = content.ToolUse{ID: w.id(), Name: w.name(), Input: w.input()}
	}
	return calls
}

func (w *world) results() []content.ToolResult {
	results := make([]content.ToolResult, 1+w.IntN(3))
	for i := range results {
		said, _ := content.Of(w.inner()...)
		results[i] = content.ToolResult{CallID: w.id(), Content: said, IsError: w.one(3)}
		for _, call := range w.d.OpenCalls() {
			if w.one(2) {
				results[i].CallID = call.ID
			}
		}
	}
	return results
}

func (w *world) resultBlocks() []content.Block {
	var blocks []content.Block
	for _, r := range w.results() {
		blocks = append(blocks, r)
		if w.one(2) {
			blocks = append(blocks, content.Text{Text: w.text()})
		}
	}
	return blocks
}

// inner is what a tool can return.
func (w *world) inner() []content.Block {
	var blocks []content.Block
	for range w.IntN(3) {
		blocks = append(blocks, pick[content.Block](w, content.Text{Text: w.text()}, w.image(), w.document(), w.opaque(), content.Text{Text: "22°C"}))
	}
	return blocks
}

func (w *world) blocks(role content.Role) []content.Block {
	var blocks []content.Block
	for range w.IntN(4) {
		switch w.IntN(10) {
		case 0, 1:
			blocks = append(blocks, content.Text{Text: w.text(), Extra: w.extra()})
		case 2:
			blocks = append(blocks, w.image())
		case 3:
			blocks = append(blocks, w.document())
		case 4, 5:
			blocks = append(blocks, w.thinking())
		case 6:
			blocks = append(blocks, w.opaque())
		case 7:
			blocks = append(blocks, content.Unknown{JSON: `{"type":"hologram"}`})
		case 8:
			blocks = append(blocks, content.ToolUse{ID: w.id(), Name: w.name(), Input: w.input(), Extra: w.extra()})
		case 9:
			blocks = append(blocks, content.ToolResult{CallID: w.id(), Content: content.Words(w.text()), IsError: w.one(2), Extra: w.extra()})
		}
	}
	if role == content.Assistant && w.one(2) {
		blocks = append(blocks, w.calls()...)
	}
	return blocks
}

func (w *world) thinking() content.Block {
	return pick[content.Block](w, signed, signed, content.Thinking{Text: "unsigned"}, content.Thinking{Redacted: "cmVkYWN0ZWQ="},
		content.Thinking{Signature: "c2ln"}, content.Thinking{Text: "x", Signature: "y", Extra: content.Extra{API: "gemini", JSON: `{"z":1}`}}, content.Thinking{})
}

func (w *world) image() content.Block {
	return content.Image{Source: pick(w,
		content.Source{MediaType: "image/png", Data: onePNG}, content.Source{MediaType: "image/jpeg", Data: onePNG},
		content.Source{MediaType: "image/png", Data: "AAAA"}, content.Source{MediaType: "image/png", Data: "not base64!"},
		content.Source{MediaType: "image/bmp", Data: "Qk0AAAAA"}, content.Source{Data: onePNG}, content.Source{MediaType: "image/png", Data: onePNG[:len(onePNG)-1]},
		content.Source{URL: "https://example.com/x.png"}, content.Source{URL: "http://example.com/x.png"}, content.Source{URL: "data:image/png;base64," + onePNG},
		content.Source{FileID: "file_1"}, content.Source{MediaType: "image/svg+xml", Text: "<svg/>"}, content.Source{MediaType: "image/png", Data: "iVBO\nRw0K"},
	), Extra: w.extra()}
}

func (w *world) document() content.Block {
	return content.Document{Title: w.text(), Source: pick(w,
		content.Source{MediaType: "application/pdf", Data: "JVBERi0xLjcK"}, content.Source{MediaType: "application/pdf", Data: "AAAA"},
		content.Source{MediaType: "text/plain", Text: "words"}, content.Source{MediaType: "text/markdown", Text: "# words"}, content.Source{Text: " "},
		content.Source{MediaType: "text/csv", Data: "YSxiCg=="}, content.Source{MediaType: "application/zip", Data: "UEsDBA=="}, content.Source{Data: "AAAA"},
		content.Source{URL: "https://example.com/x.pdf"}, content.Source{URL: "ftp://example.com/x.pdf"}, content.Source{FileID: "file_2"},
	), Extra: w.extra()}
}

func (w *world) extra() content.Extra {
	return pick(w, content.Extra{}, content.Extra{}, content.Extra{}, content.Extra{API: API, JSON: `{"cache_control":{"type":"ephemeral"}}`},
		content.Extra{API: API, JSON: `{"cache_control":{"type":"ephemeral","ttl":"1h"}}`}, content.Extra{API: "openai-chat", JSON: `{"refusal":null}`})
}

func (w *world) marked() content.Block { return content.Text{Text: "x", Extra: w.extra()} }

func (w *world) opaque() content.Block {
	return content.Opaque{API: pick(w, API, API, API, "gemini"), JSON: pick(w,
		content.JSON(`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"q":"x"}}`),
		`{"type":"server_tool_use","id":"srvtoolu_2","name":"web_search","input":{}}`,
		`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search"}`,
		`{"type":"server_tool_use","id":"toolu bad","name":"web_search","input":{}}`,
		`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}`,
		`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_2","content":[],"cache_control":{"type":"ephemeral"}}`,
		`{"type":"mcp_tool_use","id":"mcptoolu_1","name":"echo","input":{},"server_name":"s"}`,
		`{"type":"mcp_tool_result","tool_use_id":"mcptoolu_1","is_error":false,"content":[]}`,
		`{"type":"container_upload","file_id":"file_3"}`, `{"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"x"}]}`,
		`{"type":"tool_reference","tool_name":"f"}`, `{"type":"text","text":""}`, `{"type":"text","text":" "}`, `{"type":"tool_use","id":"z","name":"f","input":{}}`,
		`{"type":"tool_result","tool_use_id":"z"}`, `{"type":"thinking","thinking":"x","signature":"y"}`, `{"type":"image","source":{"type":"base64"}}`, `{}`, `{"type":7}`,
	)}
}
