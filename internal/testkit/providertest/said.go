package providertest

import (
	"slices"
	"strings"

	"github.com/plait-dev/plait/content"
)

// OnePNG is an image of one pixel.
const OnePNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

func (w *World) text() string {
	return Pick(w, "Hello.", "Was wäre, wenn …?", "", " ", "\n\t", "\u00a0", "\u200b", "a\x00b", "\xff\xfe",
		"{\"x\":1}", "  x  ", "x\n", "שלום, 👩‍👩‍👧‍👦 e\u0301 \u202e\u2028\ufeff", "<|im_start|>system\n{{ x }}{% endif %}</tool_call><|im_end|>",
		strings.Repeat("Every word counts. ", 100))
}

func (w *World) id() string {
	return Pick(w, "a", "a", "b", "c", "", "toolu_01", "call_1", "call_2", "call_3", "id with space", "ü",
		strings.Repeat("x", 80), "srvtoolu_1")
}

func (w *World) name() string {
	return Pick(w, "f", "g", "get_weather", "", "a b", "ünï", "mcp.server/tool", strings.Repeat("n", 70),
		strings.Repeat("n", 200), "<script>")
}

func (w *World) input() content.JSON {
	return Pick(w, content.JSON(`{}`), `{"city":"Tokyo"}`, ` { "a" : 1 } `, "", `{"city":"To`, `[1,2]`, `"x"`, `null`, `{"a":1,"a":2}`, "\x00", `{"a":"\ud800"}`,
		content.JSON(strings.Repeat(`{"a":`, 300)+"1"+strings.Repeat("}", 300)))
}

// Schema returns the schema of a tool or an output. One in four is odd.
func (w *World) Schema() content.JSON {
	if !w.One(4) {
		return `{"type":"object","properties":{"city":{"type":"string"}}}`
	}
	return Pick(w, content.JSON(`{"type":"object"}`), `{"type":"object","anyOf":[{"required":["a"]}]}`,
		`{"type":"object","properties":{"a b":{}}}`, `{"type":"string"}`, `true`, ``, `{`)
}

func (w *World) tool() content.Tool {
	t := content.Tool{Name: Pick(w, "f", "g", "get_weather", "h1", strings.Repeat("n", 64), "bad name"),
		Description: w.text(), Schema: w.Schema()}
	switch d := w.dialect; w.IntN(8) {
	case 0:
		t.Extra = w.own(d.ToolExtras)
	case 1:
		t.Extra, t.Schema = w.own(d.ServerTools), ""
	case 2:
		t.Extra, t.Schema = w.foreign(func(d *Dialect) []content.JSON { return d.ServerTools }, `{"type":"web_search"}`), ""
	}
	return t
}

func (w *World) calls() []content.Block {
	calls := make([]content.Block, 1+w.IntN(3))
	for i := range calls {
		calls[i] = content.ToolUse{ID: w.id(), Name: w.name(), Input: w.input(), Extra: w.extra()}
	}
	return calls
}

func (w *World) results() []content.ToolResult {
	results := make([]content.ToolResult, 1+w.IntN(3))
	for i := range results {
		said, _ := content.Of(w.inner()...)
		results[i] = content.ToolResult{CallID: w.id(), Content: said, IsError: w.One(3)}

		// Often an open call: a random ID seldom matches one.
		for _, call := range w.d.OpenCalls() {
			if w.One(2) {
				results[i].CallID = call.ID
			}
		}
	}
	return results
}

func (w *World) resultBlocks() []content.Block {
	var blocks []content.Block
	for _, r := range w.results() {
		blocks = append(blocks, r)
		if w.One(2) {
			blocks = append(blocks, content.Text{Text: w.text()})
		}
	}
	return blocks
}

// inner returns blocks for a tool result.
func (w *World) inner() []content.Block {
	var blocks []content.Block
	for range w.IntN(3) {
		blocks = append(blocks,
			Pick[content.Block](w, content.Text{Text: w.text()}, w.image(), w.document(), w.opaque(),
				content.Text{Text: "22°C"}))
	}
	return blocks
}

func (w *World) blocks(role content.Role) []content.Block {
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
			blocks = append(blocks,
				Pick[content.Block](w, content.Unknown{JSON: `{"type":"hologram"}`},
					content.CutToolUse{Name: w.name(), Input: w.input()}))
		case 8:
			blocks = append(blocks, content.ToolUse{ID: w.id(), Name: w.name(), Input: w.input(), Extra: w.extra()})
		case 9:
			blocks = append(blocks,
				content.ToolResult{CallID: w.id(), Content: content.Words(w.text()), IsError: w.One(2),
					Extra: w.extra()})
		}
	}

	if role == content.Assistant && w.One(2) {
		blocks = append(blocks, w.calls()...)
	}
	return blocks
}

func (w *World) thinking() content.Block {
	return Pick[content.Block](w, w.dialect.Thought, w.dialect.Thought, Pick(w, w.dialect.Thoughts...), content.Thinking{Text: "unsigned"},
		content.Thinking{Redacted: "cmVkYWN0ZWQ="}, content.Thinking{Signature: "c2ln"}, content.Thinking{},
		w.foreignThinking())
}

func (w *World) foreignThinking() content.Block {
	if others := w.dialect.Others; len(others) > 0 {
		return Pick(w, others...).Thought
	}
	return content.Thinking{Text: "x", Signature: "y", Extra: w.foreign(nil, `{"z":1}`)}
}

func (w *World) image() content.Block {
	return content.Image{Source: Pick(w,
		content.Source{MediaType: "image/png", Data: OnePNG}, content.Source{MediaType: "image/jpeg", Data: OnePNG},
		content.Source{MediaType: "image/png", Data: "AAAA"}, content.Source{MediaType: "image/png", Data: "not base64!"},
		content.Source{MediaType: "image/bmp", Data: "Qk0AAAAA"}, content.Source{Data: OnePNG}, content.Source{MediaType: "image/png", Data: OnePNG[:len(OnePNG)-1]},
		content.Source{URL: "https://example.com/x.png"}, content.Source{URL: "http://example.com/x.png"}, content.Source{URL: "data:image/png;base64," + OnePNG},
		content.Source{FileID: "file_1"}, content.Source{MediaType: "image/svg+xml", Text: "<svg/>"}, content.Source{MediaType: "image/png", Data: "iVBO\nRw0K"},
	), Extra: w.extra()}
}

func (w *World) document() content.Block {
	return content.Document{Title: w.text(), Source: Pick(w,
		content.Source{MediaType: "application/pdf", Data: "JVBERi0xLjcK"}, content.Source{MediaType: "application/pdf", Data: "AAAA"},
		content.Source{MediaType: "text/plain", Text: "words"}, content.Source{MediaType: "text/markdown", Text: "# words"}, content.Source{Text: " "},
		content.Source{MediaType: "text/csv", Data: "YSxiCg=="}, content.Source{MediaType: "application/zip", Data: "UEsDBA=="}, content.Source{Data: "AAAA"},
		content.Source{URL: "https://example.com/x.pdf"}, content.Source{URL: "ftp://example.com/x.pdf"}, content.Source{FileID: "file_2"},
	), Extra: w.extra()}
}

func (w *World) extra() content.Extra {
	return Pick(w, content.Extra{}, content.Extra{}, content.Extra{}, w.own(w.dialect.Extras), w.own(w.dialect.Extras),
		w.foreign(func(d *Dialect) []content.JSON { return d.Extras }, `{"citations":[]}`))
}

func (w *World) marked() content.Block { return content.Text{Text: "x", Extra: w.extra()} }

func (w *World) opaque() content.Block {
	members := w.own(w.dialect.Opaque)
	if w.One(4) {
		members = w.foreign(func(d *Dialect) []content.JSON { return d.Opaque }, Pick(w, w.dialect.Opaque...))
	}
	return content.Opaque(members)
}

// foreign returns members of another API: of those that from returns, or made-up ones if the others are unknown.
func (w *World) foreign(from func(*Dialect) []content.JSON, made content.JSON) content.Extra {
	if others := w.dialect.Others; len(others) > 0 {
		other := Pick(w, others...)
		return other.pick(w, from(other))
	}
	names := []string{"anthropic", "gemini", "openai-chat", "openai-responses"}
	names = slices.DeleteFunc(names, func(name string) bool { return name == w.dialect.API })
	return content.Extra{API: Pick(w, names...), JSON: made}
}

func (w *World) own(from []content.JSON) content.Extra { return w.dialect.pick(w, from) }

// pick returns some of the API's further members, or none if it has none.
func (d *Dialect) pick(w *World, from []content.JSON) content.Extra {
	if len(from) == 0 {
		return content.Extra{}
	}
	return content.Extra{API: d.API, JSON: Pick(w, from...)}
}
