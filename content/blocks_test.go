package content_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/blockcodec"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/stretchr/testify/require"
)

// What package node uses.
var (
	appendBlock     = blockcodec.Append.(func([]byte, content.Block) []byte)
	parseBlock      = blockcodec.Parse.(func([]byte) (content.Block, error))
	appendCanonical = blockcodec.AppendCanonical.(func(content.Blocks, []byte, func(bool, string, int) string) []byte)
)

// variants is one filled block of every variant. TestVariantsListsEveryVariant keeps it complete.
func variants() []content.Block {
	extra := content.Extra{API: "anthropic", JSON: `{"b": 1.0, "a":[ ]}`}
	words := content.Words("inner")
	return []content.Block{
		content.Text{Text: "words", Extra: extra},
		content.Image{Source: content.Source{MediaType: "image/png", Data: "AAAA"}, Extra: extra},
		content.Document{Source: content.Source{URL: "https://example.com/a.pdf"}, Title: "title", Extra: extra},
		content.Thinking{Text: "hm", Signature: "sig", Redacted: "xx", Extra: extra},
		content.ToolUse{ID: "1", Name: "f", Input: `{"x": 1.0}`, Extra: extra},
		content.ToolResult{CallID: "1", Content: words, IsError: true, Extra: extra},
		content.CutToolUse{Name: "get_weather", Input: `{"city":"To`},
		content.Opaque{API: "anthropic", JSON: `{"type":"server_tool_use", "x":1.0}`},
		content.Unknown{JSON: `{"type":"hologram", "x" : 1.0}`},
	}
}

func TestVariantsListsEveryVariant(t *testing.T) {
	names := map[string]bool{}
	for _, b := range variants() {
		names[reflect.TypeOf(b).Name()] = true
		require.False(t, reflect.ValueOf(b).IsZero())
	}
	source, err := os.ReadFile("block.go")
	require.NoError(t, err)
	sealed := regexp.MustCompile(`(?m)^func \((\w+)\) kind\(\)`).FindAllStringSubmatch(string(source), -1)
	require.Len(t, names, len(sealed))
	for _, variant := range sealed {
		require.True(t, names[variant[1]], variant[1])
		require.True(t, strings.Contains(string(source), "["+variant[1]+"]"), "the comment of Block lists %s", variant[1])
	}
}

func of(t testing.TB, bs ...content.Block) content.Blocks {
	t.Helper()
	b, err := content.Of(bs...)
	require.NoError(t, err)
	return b
}

// pointer returns &b, which fits Block as well.
func pointer(b content.Block) content.Block {
	p := reflect.New(reflect.TypeOf(b))
	p.Elem().Set(reflect.ValueOf(b))
	return p.Interface().(content.Block)
}

func TestAPointerToAVariantIsReplacedByItsValue(t *testing.T) {
	for _, b := range variants() {
		p := pointer(b)
		list := of(t, p)
		require.Equal(t, b, list.At(0))
		reflect.ValueOf(p).Elem().SetZero()
		require.Equal(t, b, list.At(0), "and is not looked at again")

		none := reflect.Zero(reflect.PointerTo(reflect.TypeOf(b))).Interface().(content.Block)
		_, err := content.Of(b, none)
		require.EqualError(t, err, "block 1: is nil")
	}
}

func TestComparingNeverPanics(t *testing.T) {
	all := variants()
	for i, a := range all {
		for k, b := range all {
			require.Equal(t, i == k, a == b)
			require.Equal(t, i == k, of(t, a).Equal(of(t, b)))
			require.False(t, of(t, a) == of(t, b), "== is identity")
		}
	}
	require.True(t, of(t, all...).Equal(of(t, all...)))
	require.False(t, of(t, all...).Equal(of(t, all[1:]...)))
	result := content.ToolResult{Content: content.Words("x")}
	require.True(t, of(t, result).Equal(of(t, content.ToolResult{Content: content.Words("x")})))
	require.False(t, of(t, result).Equal(of(t, content.ToolResult{Content: content.Words("y")})))
	require.False(t, of(t, result).Equal(of(t, content.ToolResult{Content: content.Words("x"), IsError: true})))
	require.False(t, of(t, result).Equal(of(t, content.Text{Text: "x"})))
}

func TestNothingPassedInOrHandedOutChangesAList(t *testing.T) {
	given := variants()
	list := of(t, given...)
	before := string(list.Append(nil))
	clear(given)
	out := list.Slice()
	clear(out)
	list.ToolUses()[0].Name = "changed"
	list.ToolResults()[0].CallID = "changed"
	for _, b := range list.All() {
		if text, ok := b.(content.Text); ok {
			text.Text = "changed"
			_ = text
		}
	}
	saved, err := list.MarshalJSON()
	require.NoError(t, err)
	clear(saved)
	data := []byte(before)
	var read content.Blocks
	require.NoError(t, json.Unmarshal(data, &read))
	clear(data)
	require.Equal(t, before, string(list.Append(nil)))
	require.Equal(t, before, string(read.Append(nil)))
}

func TestOfRefusesWithPlaceAndReason(t *testing.T) {
	source := content.Source{Data: "AAAA"}
	two := content.Source{Data: "AAAA", URL: "u"}
	places := "its source needs exactly one of data, text, URL and file ID; it has "
	for name, c := range map[string]struct {
		block  content.Block
		kind   string
		reason string
	}{
		"nil":                    {nil, "", "is nil"},
		"image without source":   {content.Image{}, "image", places + "0"},
		"image with two sources": {content.Image{Source: two}, "image", places + "2"},
		"document without":       {content.Document{Source: content.Source{MediaType: "m"}}, "document", places + "0"},
		"document with two":      {&content.Document{Source: two}, "document", places + "2"},
		"extra without API":      {content.Text{Extra: content.Extra{JSON: "{}"}}, "text", "its extra names no API"},
		"extra without JSON":     {content.Image{Source: source, Extra: content.Extra{API: "a"}}, "image", `needs a JSON object, has ""`},
		"extra that is a list":   {content.Thinking{Extra: content.Extra{API: "a", JSON: "[]"}}, "thinking", `needs a JSON object, has "[]"`},
		"extra that is broken":   {content.ToolUse{Extra: content.Extra{API: "a", JSON: "{"}}, "tool_use", `needs a JSON object, has "{"`},
		"opaque without API":     {content.Opaque{JSON: "{}"}, "opaque", "names no API"},
		"opaque without JSON":    {content.Opaque{API: "a"}, "opaque", `needs a JSON object, has ""`},
		"unknown without JSON":   {content.Unknown{}, "unknown", `needs a JSON object, has ""`},
		"unknown without type":   {content.Unknown{JSON: "{}"}, "unknown", `it has no type: "{}"`},
		"unknown that is known":  {content.Unknown{JSON: `{"type":"text"}`}, "unknown", "has the type text, which is a known type"},
		"result in a result":     {content.ToolResult{Content: of(t, content.ToolResult{})}, "tool_result", "holds a tool_result, which only a message can"},
		"call in a result":       {content.ToolResult{Content: of(t, content.ToolUse{})}, "tool_result", "holds a tool_use, which only a message can"},
		"thinking in a result":   {content.ToolResult{Content: of(t, content.Thinking{})}, "tool_result", "holds a thinking, which only a message can"},
		"result's extra":         {content.ToolResult{Extra: content.Extra{API: "a"}}, "tool_result", `needs a JSON object, has ""`},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := content.Of(content.Text{}, content.Text{}, c.block)
			require.ErrorIs(t, err, content.ErrBlock)
			require.EqualError(t, err, strings.Replace(fmt.Sprintf("block 2 (%s): %s", c.kind, c.reason), " ()", "", 1))
			require.Zero(t, list)
		})
	}
}

func TestEveryTextIsKeptAsAFileWouldHoldIt(t *testing.T) {
	const bad, good = "a\xffb\xc3", "a\uFFFDb\uFFFD"
	require.Equal(t, good, safetext.UTF8(bad))
	require.Equal(t, good, safetext.UTF8(good))
	extra := content.Extra{API: bad, JSON: "{}"}
	for _, b := range []content.Block{
		content.Text{Text: bad, Extra: extra},
		content.Image{Source: content.Source{URL: bad, MediaType: bad}, Extra: extra},
		content.Image{Source: content.Source{FileID: bad}},
		content.Image{Source: content.Source{Data: bad}},
		content.Document{Source: content.Source{Text: bad}, Title: bad, Extra: extra},
		content.Thinking{Text: bad, Signature: bad, Redacted: bad, Extra: extra},
		content.ToolUse{ID: bad, Name: bad, Input: bad, Extra: extra},
		content.ToolResult{CallID: bad, Content: content.Words(bad), Extra: extra},
		content.CutToolUse{Name: bad, Input: bad},
		content.Opaque{API: bad, JSON: "{}"},
	} {
		list := of(t, b)
		var read content.Blocks
		require.NoError(t, read.UnmarshalJSON(list.Append(nil)))
		require.True(t, list.Equal(read), "%T", b)
		require.NotContains(t, strings.ToUpper(string(list.Append(nil))), "\xff")
	}
	_, err := content.Of(content.Unknown{JSON: "{\"type\":\"\xff\"}"})
	require.ErrorIs(t, err, content.ErrBlock, "JSON is not repaired")
}

func TestTheSavedFormOfEveryVariantIsReadBack(t *testing.T) {
	all := of(t, variants()...)
	saved := string(all.Append(nil))
	var read content.Blocks
	require.NoError(t, json.Unmarshal([]byte(saved), &read))
	require.True(t, all.Equal(read))
	require.Equal(t, saved, string(read.Append(nil)))
	for i, b := range variants() { // each alone, and with its members in another order and printed anew
		one := string(appendBlock(nil, b))
		got, err := parseBlock([]byte(one))
		require.NoError(t, err)
		require.True(t, of(t, b).Equal(of(t, got)), "%T", b)
		if i == 7 {
			continue // an unknown block is its bytes
		}
		var members map[string]json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(one), &members))
		delete(members, "json")
		turned, err := json.MarshalIndent(members, "", " ")
		require.NoError(t, err)
		got, err = parseBlock(turned)
		require.NoError(t, err)
		require.IsType(t, b, got)
	}
}

func TestTheZeroOfEveryVariantIsSavedAsItsType(t *testing.T) {
	for _, b := range variants() {
		zero := reflect.Zero(reflect.TypeOf(b)).Interface().(content.Block)
		saved := appendBlock(nil, zero)
		require.Truef(t, json.Valid(saved), "%T: %s", b, saved)
		read, err := parseBlock(saved)
		require.NoError(t, err)
		require.Equal(t, zero, read)
	}
}

func TestABlockOfAnUnknownTypeKeepsItsBytes(t *testing.T) {
	saved := `[{"type":"hologram", "b": 1.0,"a":[ ]},{"n":1e400,"type":"x\u0041"},{"type":"text","text":"a"}]`
	var read content.Blocks
	require.NoError(t, json.Unmarshal([]byte(saved), &read))
	require.Equal(t, saved, string(read.Append(nil)))
	require.Equal(t, content.Unknown{JSON: `{"n":1e400,"type":"x\u0041"}`}, read.At(1))
	lines := content.Unknown{JSON: "{\"type\":\n\"hologram\"}"}
	require.NotContains(t, string(of(t, lines).Append(nil)), "\n")
	require.NoError(t, read.UnmarshalJSON(of(t, lines).Append(nil)))
	require.Equal(t, lines, read.At(0))
}

func TestABrokenBlockIsRefusedAndTheListKept(t *testing.T) {
	kept := of(t, content.Text{Text: "kept"})
	for saved, says := range map[string]string{
		`[{"type":"text"},{"text":"x"}]`: "block 1: it has no type",
		`[{"type":"text"},{"type":""}]`:  "block 1: it has no type",
		`[{"type":"text","text":1}]`:     "block 0 (text)",
		`[{"type":"image"}]`:             "block 0 (image): its source",
		`[{"type":"tool_result","content":[{"type":"tool_result","content":[{"type":"?"}]}]}]`: "block 0 (tool_result): content: block 0 (tool_result): is inside another tool result",
		`[{"type":"tool_result","content":[{"type":"tool_use"}]}]`:                             "which only a message can",
		`[{"type":"tool_result","content":{}}]`:                                                "within \"/content\"",
		`[{"type":"unknown","json":{"type":"text"}}]`:                                          "which is a known type",
		`[{"type":"hologram","a":1,"a":2}]`:                                                    "duplicate",
		`[1]`:                                                                                  "block 0",
		`[null]`:                                                                               "block 0: it has no type",
		`{}`:                                                                                   "",
		`[`:                                                                                    "",
		"[{\"type\":\"\xff\"}]":                                                                "UTF-8",
	} {
		list := kept
		err := list.UnmarshalJSON([]byte(saved))
		require.ErrorContains(t, err, says, saved)
		require.True(t, list.Equal(kept))
	}
	for _, saved := range []content.JSON{"", "x", `{"type":"`, `{"type":"hologram"`, `{"type":"hologram"}}`, `{"type":"text"`, "[]", "null"} {
		_, err := parseBlock([]byte(saved))
		require.Error(t, err, "%q", saved)
	}
}

func TestNestedResultsAreRefusedAtOnce(t *testing.T) {
	deep := strings.Repeat(`[{"type":"tool_result","content":`, 4000) + "[]" + strings.Repeat("}]", 4000)
	require.ErrorContains(t, new(content.Blocks).UnmarshalJSON([]byte(deep)), "is inside another tool result")
}

func TestLists(t *testing.T) {
	require.Zero(t, of(t))
	require.Zero(t, content.Words(""))
	require.Zero(t, content.Blocks{}.Len())
	require.Nil(t, content.Blocks{}.Slice())
	require.Equal(t, "[]", string(content.Blocks{}.Append(nil)))
	require.Empty(t, content.Blocks{}.Text())
	list := of(t, content.Text{Text: "a"}, content.ToolUse{Name: "f"}, content.Text{}, content.Text{Text: "b"}, content.ToolResult{CallID: "1"})
	require.Equal(t, "a\nb", list.Text())
	require.Equal(t, []content.ToolUse{{Name: "f"}}, list.ToolUses())
	require.Equal(t, []content.ToolResult{{CallID: "1"}}, list.ToolResults())
	require.Nil(t, content.Words("text").ToolUses(), "none takes no memory")
	for i, b := range list.All() {
		require.Equal(t, list.At(i), b)
		if i == 2 {
			break
		}
	}
	require.Panics(t, func() { list.At(5) })
}

func TestExtraGoesOnlyWhereItCameFrom(t *testing.T) {
	e := content.Extra{API: "anthropic", JSON: `{"a":1}`}
	require.Equal(t, content.JSON(`{"a":1}`), e.For("anthropic"))
	require.Empty(t, e.For("openai-chat"))
}

func TestToolCheck(t *testing.T) {
	object := content.JSON(`{"type":"object"}`)
	server := content.Extra{API: "anthropic", JSON: `{"type":"web_search_20250305"}`}
	for name, tool := range map[string]content.Tool{
		"no name":          {Schema: object},
		"bad name":         {Name: "a b", Schema: object},
		"begins with -":    {Name: "-a", Schema: object},
		"65 letters":       {Name: strings.Repeat("a", 65), Schema: object},
		"no schema":        {Name: "f"},
		"broken schema":    {Name: "f", Schema: `{"type":`},
		"schema of a list": {Name: "f", Schema: `{"type":"array"}`},
		"schema is a list": {Name: "f", Schema: `[]`},
		"extra alone":      {Name: "f", Schema: object, Extra: content.Extra{JSON: "{}"}},
	} {
		require.ErrorIs(t, tool.Check(), content.ErrTool, name)
	}
	require.NoError(t, content.Tool{Name: "_f-1", Schema: object}.Check())
	require.NoError(t, content.Tool{Name: strings.Repeat("a", 64), Schema: object}.Check())
	require.NoError(t, content.Tool{Name: "web_search", Extra: server}.Check())
	require.True(t, content.Tool{Name: "web_search", Extra: server}.Server())
	require.False(t, content.Tool{Name: "f", Schema: object, Extra: server}.Server())
}

func TestUsage(t *testing.T) {
	u := content.Usage{Input: 1, Output: 2, CacheRead: 4, CacheWrite: 8, Reasoning: 16}
	require.Equal(t, content.Usage{Input: 2, Output: 4, CacheRead: 8, CacheWrite: 16, Reasoning: 32}, u.Plus(u))
	require.EqualValues(t, 15, u.Total())
	require.True(t, content.User.Valid() && content.Assistant.Valid())
	require.False(t, content.Role("system").Valid())
}

// FuzzBlocks: what is read is written, and what was written once is read and written the same for ever.
func FuzzBlocks(f *testing.F) {
	f.Add([]byte(of(f, variants()...).Append(nil)))
	f.Add([]byte(`[{"type":"tool_use","input_text":"{"},{"type":"unknown","json_text":"{\"type\":\n\"x\"}"}]`))
	f.Add([]byte(`[{"text":"x","type":"text","extra":{"api":"a","json":{"b" : 1}}}]`))
	f.Add([]byte(`[{"type":"tool_result","content":[{"type":"opaque","api":"a","json":{}}],"is_error":true}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var read content.Blocks
		if err := json.Unmarshal(data, &read); err != nil {
			require.Zero(t, read)
			return
		}
		once := read.Append(nil)
		require.Truef(t, json.Valid(once), "%s", once)
		require.NotContains(t, string(once), "\n")
		var again content.Blocks
		require.NoError(t, again.UnmarshalJSON(once))
		require.True(t, read.Equal(again))
		require.Equal(t, string(once), string(again.Append(nil)))
		canonical := appendCanonical(read, nil, func(bool, string, int) string { return "" })
		require.Truef(t, json.Valid(canonical), "%s", canonical)
		require.Equal(t, string(canonical), string(appendCanonical(again, nil, func(bool, string, int) string { return "" })))
	})
}

func TestErrorsAreFoundByKind(t *testing.T) {
	_, err := content.Of(nil)
	require.True(t, errors.Is(err, content.ErrBlock))
	require.Equal(t, "block 0: is nil", err.Error())
}
