package dialect_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/safetext"
)

// told is what an opaque block of another API says to Chat Completions.
func told(t testing.TB, j content.JSON) string {
	t.Helper()
	b, why := targetOf("openai-chat").Accept(content.Assistant, content.Opaque{API: "gemini", JSON: j}, false)
	require.NotEmpty(t, why)
	if b == nil {
		return ""
	}
	return b.(content.Text).Text
}

func TestForeignBlocksBecomeText(t *testing.T) {
	for j, want := range map[content.JSON]string{
		`{"type":"web_search_call","action":{"type":"search","query":"Oslo"}}`:                                             "[web_search_call: query: Oslo]",
		`{"type":"server_tool_use","name":"web_search","input":{"query":"Oslo"}}`:                                          "[server_tool_use: name: web_search\ninput: {\"query\":\"Oslo\"}]",
		`{"type":"x_result","content":[{"title":"A","url":"https://a.example","encrypted_content":"Zm9v"},{"title":"B"}]}`: "[x_result: title: A\nurl: https://a.example\ntitle: B]",
		`{"executableCode":{"language":"PYTHON","code":"print(1)"}}`:                                                       "[executableCode: language: PYTHON\ncode: print(1)]",
		`{"executableCode":{"language":"PYTHON","code":"print(1)"},"thoughtSignature":"c2ln"}`:                             "[executableCode: language: PYTHON\ncode: print(1)]",
		`{"toolCall":{"toolType":"GOOGLE_SEARCH_WEB","args":{"queries":["Oslo"]}}}`:                                        "[toolCall: args: {\"queries\":[\"Oslo\"]}]",
		`{"text":"only words"}`:                 "[text: only words]",
		`{"name":"a","text":"b"}`:               "[gemini: name: a\nb]",
		`{"type":"x","data":"secret","id":"1"}`: "",
		content.JSON(`{"type":"x","content":"` + strings.Repeat("A", 600) + `"}`): "",
		`{"type":"x","content":[1,true,null,[]]}`:                                 "",
		`{"type":"x"}`:                     "",
		`{}`:                               "",
		`{"type":7,"text":"a","name":"b"}`: "[gemini: a\nname: b]",
	} {
		require.Equal(t, want, told(t, j), j)
	}
}

func TestTextOfForeignBlocksIsCut(t *testing.T) {
	words := func(n int) string { return strings.Repeat("wörd", n/5-1) + " " + strings.Repeat("x", n%5+4) }
	quoted := func(name, said string) content.JSON {
		return content.JSON(`{"type":"t","` + name + `":"` + said + `"}`)
	}
	for _, n := range []int{3998, 3999, 4000} {
		require.Equal(t, "[t: "+words(n)+"]", told(t, quoted("text", words(n))), n)
	}
	require.Equal(t, "[t: "+words(4000)+"…]", told(t, quoted("text", words(4000)+"x")))
	require.Equal(t, "[t: ab "+strings.Repeat("ö", 1998)+"…]", told(t, quoted("text", "ab "+strings.Repeat("ö", 2010))), "no letter is cut in half")

	data := strings.Repeat("A", 512)
	require.Equal(t, "[t: url: "+data+"]", told(t, quoted("url", data)))
	require.Empty(t, told(t, quoted("url", data+"A")), "more without a space is data")
	require.Equal(t, "[t: url: "+data+" A]", told(t, quoted("url", data+" A")))

	part := `{"text":"` + words(2000) + `"}`
	twice := words(2000) + "\n" + words(2000)
	require.Equal(t, "[t: "+twice[:4000]+"…]", told(t, content.JSON(`{"type":"t","content":[`+part+`,`+part+`,`+part+`]}`)))
}

func TestTextOfForeignBlocksIsSafe(t *testing.T) {
	for j, want := range map[content.JSON]string{
		`{"type":"x","text":"a\u001b[2Jb\u0000c\u202ed\u2066e\u00adf\r\ng\ud83d\ude00"}`: "[x: a␛[2Jb␀c\ufffdd\ufffde\ufffdf\ng😀]",
		`{"type":"a\nb\u001b","text":"c"}`:                                               "[a b␛: c]",
		`{"\u001bcode":{"text":"c"}}`:                                                    "[␛code: c]",
		`{"type":"x","text":"\udb40\udc41\udb40\udc42hi"}`:                               "[x: \ufffd\ufffdhi]",
		`{"type":"x","text":"\u0000\u0001"}`:                                             "[x: ␀␁]",
		`{"type":"x","input":{"a":"\u001b"},"text":"\u200b"}`:                            `[x: input: {"a":"\u001b"}` + "\n\ufffd]",
		`{"type":"x","text":"👩\u200d💻"}`:                                                 "[x: 👩\u200d💻]",
	} {
		require.Equal(t, want, told(t, j), j)
	}
}

func TestTextOfForeignBlocksIsShort(t *testing.T) {
	many := strings.Repeat(`{"text":"some words"},`, 100_000)
	deep := strings.Repeat(`{"content":`, 5000) + `"words"` + strings.Repeat("}", 5000)
	for name, j := range map[string]string{
		"one long text":     `{"type":"x","text":"` + strings.Repeat("é ", 1<<20) + `"}`,
		"many texts":        `{"type":"x","content":[` + many + `{}]}`,
		"a long type":       `{"type":"` + strings.Repeat("t", 1<<20) + `","text":"a"}`,
		"a long input":      `{"type":"x","input":{"a":"` + strings.Repeat("i ", 1<<20) + `"}}`,
		"a long name":       `{"` + strings.Repeat("n", 1<<20) + `":{"text":"a"}}`,
		"what nests deeply": deep,
		"lists of lists":    `{"type":"x","content":` + strings.Repeat("[", 5000) + `"a b"` + strings.Repeat("]", 5000) + `}`,
	} {
		said := told(t, content.JSON(j))
		require.LessOrEqual(t, len(said), 4200, name)
		require.Equal(t, safetext.UTF8(said), said, name)
		require.Equal(t, strings.HasPrefix(j, `{"content"`) || strings.Contains(j, "[[["), said == "", name)
	}
}

func FuzzForeignBlocks(f *testing.F) {
	for _, seed := range []string{
		`{"type":"x","text":"a"}`, `{"a":{"text":"\u001b"}}`, `{"type":"\ud800","text":"x"}`, `{"type":"x","content":[[{"query":["a",{"url":"b"}]}]]}`, `{"text":"\u202e"}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, j string) {
		if _, err := content.Of(content.Opaque{API: "gemini", JSON: content.JSON(j)}); err != nil {
			return // content.Of refuses the block
		}
		said := told(t, content.JSON(j))
		require.LessOrEqual(t, len(said), 4200)
		requireShown(t, strings.ReplaceAll(said, "\u200c", ""))
	})
}
