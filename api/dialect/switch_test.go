package dialect_test

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/dialect"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
)

// A block that only one provider can read is sent to another as text. Its thinking is left out.
func ExampleTarget_Accept() {
	gemini := targetOf("gemini")
	for _, block := range []content.Block{
		content.Opaque{API: "openai-responses", JSON: `{"type":"web_search_call","id":"ws_1","action":{"type":"search","query":"weather in Oslo"}}`},
		content.Thinking{Text: "Hm.", Signature: "c2ln", Extra: content.Extra{API: "anthropic", JSON: "{}"}},
		content.ToolUse{ID: "a", Name: "get weather", Input: `"Oslo"`},
	} {
		taken, why := gemini.Accept(content.Assistant, block, false)
		fmt.Printf("%v (%s)\n", taken, why)
	}
	// Output:
	// {[web_search_call: query: weather in Oslo] { }} (a block that only openai-responses can read became text)
	// <nil> (thinking that only anthropic can read)
	// {a get_weather {"input":"Oslo"} { }} (the tool's name "get weather" became "get_weather"; the arguments of get_weather were not an object)
}

var (
	png  = base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n and more"))
	wav  = base64.StdEncoding.EncodeToString([]byte("RIFF\x24\x00\x00\x00WAVEfmt "))
	pdf  = base64.StdEncoding.EncodeToString([]byte("%PDF-1.7 and more"))
	csv  = base64.StdEncoding.EncodeToString([]byte("a,b\n1,2\n"))
	junk = base64.StdEncoding.EncodeToString([]byte{0, 1, 2, 3, 4, 5, 6, 7})
)

func source(kind, data string) content.Source { return content.Source{MediaType: kind, Data: data} }

func TestMediaAreSentReplacedOrLeftOut(t *testing.T) {
	const a, c, r, g = "anthropic", "openai-chat", "openai-responses", "gemini"
	const docx = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"

	for name, test := range map[string]struct {
		role  content.Role
		block content.Block
		want  map[string]string // by target: "" is unchanged, otherwise a part of what stands in its place
	}{
		"a picture":             {content.User, content.Image{Source: source("image/png", png)}, nil},
		"a picture, misnamed":   {content.User, content.Image{Source: source("image/jpeg", png)}, all("MediaType:image/png ")},
		"a picture, unnamed":    {content.User, content.Image{Source: source("", png)}, all("MediaType:image/png ")},
		"a picture that is not": {content.User, content.Image{Source: source("image/png", junk)}, all("[image (image/png) left out: its type is none of")},
		"a picture of HEIC":     {content.User, content.Image{Source: source("IMAGE/HEIC; a=b", junk)}, map[string]string{a: "left out", c: "left out", r: "left out", g: "MediaType:image/heic "}},
		"a picture by http":     {content.User, content.Image{Source: content.Source{URL: "http://a.example/x.png"}}, map[string]string{a: "http://a.example/x.png left out: the API does not fetch", g: "left out"}},
		"a picture by gs":       {content.User, content.Image{Source: content.Source{URL: "gs://a/x.png"}}, map[string]string{a: "left out", c: "left out", r: "left out"}},
		"a picture by file:":    {content.User, content.Image{Source: content.Source{URL: "file:///etc/passwd"}}, all("left out")},
		"a picture shown by the assistant": {content.Assistant, content.Image{Source: source("image/png", png)},
			map[string]string{a: "an assistant message", c: "an assistant message", r: "an assistant message"}},
		"a picture that is words":    {content.User, content.Image{Source: content.Source{Text: "words"}}, all("it cannot be sent as text")},
		"broken base64":              {content.User, content.Image{Source: source("image/png", png[:len(png)-1])}, all("not base64")},
		"base64 with line breaks":    {content.User, content.Image{Source: source("image/png", png[:4]+"\r\n\r\n"+png[4:])}, all("not base64")},
		"base64 of another alphabet": {content.User, content.Image{Source: source("image/png", "-_-_")}, all("not base64")},

		"a PDF":                        {content.User, content.Document{Source: source("application/pdf", pdf)}, nil},
		"a PDF, misnamed":              {content.User, content.Document{Source: source("text/plain", pdf)}, all("MediaType:application/pdf ")},
		"a PDF called audio":           {content.User, content.Document{Source: source("audio/wav", pdf)}, all("MediaType:application/pdf ")},
		"a PDF by https":               {content.User, content.Document{Source: content.Source{URL: "https://a.example/x.pdf"}}, map[string]string{c: "left out"}},
		"a document that is a picture": {content.User, content.Document{Source: source("application/octet-stream", png)}, all("MediaType:image/png ")},

		"a CSV":                       {content.User, content.Document{Title: "t", Source: source("text/csv", csv)}, map[string]string{a: "MediaType:text/plain ", c: "[Document \"t\":]\na,b\n1,2", g: "[Document"}},
		"a CSV of the assistant":      {content.Assistant, content.Document{Source: source("text/csv", csv)}, all("a,b\n1,2")},
		"a JSON file":                 {content.User, content.Document{Source: source("application/json; charset=utf-8", csv)}, map[string]string{a: "MediaType:text/plain ", c: "a,b", r: "MediaType:application/json ", g: "a,b"}},
		"a text of a type of its own": {content.User, content.Document{Source: source("text/x-go", csv)}, map[string]string{a: "MediaType:text/plain ", c: "a,b", r: "a,b", g: "a,b"}},
		"a text in bad base64":        {content.User, content.Document{Source: source("text/csv", csv[:len(csv)-1])}, all("left out")},
		"a new Word file":             {content.User, content.Document{Source: source(docx, "UEsDBBQABgAI")}, map[string]string{a: "left out", c: "left out", g: "left out"}},
		"a Word file that is none":    {content.User, content.Document{Source: source(docx, junk)}, all("left out")},
		"a Word file that is a PDF":   {content.User, content.Document{Source: source(docx, pdf)}, all("MediaType:application/pdf ")},
		"an old Excel file":           {content.User, content.Document{Source: source("application/vnd.ms-excel", "0M8R4KGxGuEA")}, map[string]string{a: "left out", c: "left out", g: "left out"}},
		"an archive":                  {content.User, content.Document{Source: source("application/zip", "UEsDBBQABgAI")}, all("left out")},

		"a text":                  {content.User, content.Document{Source: content.Source{Text: "words"}}, map[string]string{c: "words", r: "words", g: "words"}},
		"a text of the assistant": {content.Assistant, content.Document{Source: content.Source{Text: "words"}}, all("words")},
		"a text of space":         {content.User, content.Document{Source: content.Source{Text: " \n"}}, all("only white space")},
		"a Word file":             {content.User, content.Document{Title: "a\x1b\"b", Source: source("application/msword", junk)}, all("[document \"a\\x1b\\\"b\" (application/msword) left out")},

		"audio":              {content.User, content.Document{Source: source("audio/wav", wav)}, map[string]string{a: "[audio (audio/wav) left out: the model does not accept audio]", r: "not accept audio"}},
		"audio, oddly named": {content.User, content.Document{Source: source("Audio/X-Wav; codecs=1", wav)}, map[string]string{a: "left out", c: "MediaType:audio/wav ", r: "left out", g: "MediaType:audio/wav "}},
		"audio, unnamed":     {content.User, content.Document{Source: source("", wav)}, map[string]string{a: "left out", c: "MediaType:audio/wav ", r: "left out", g: "MediaType:audio/wav "}},

		"a file of nobody":    {content.User, content.Document{Source: content.Source{FileID: "f"}}, map[string]string{g: "a file of another provider"}},
		"a file of Anthropic": {content.User, content.Document{Source: content.Source{FileID: "f"}, Extra: content.Extra{API: a, JSON: "{}"}}, map[string]string{c: "left out", r: "left out", g: "left out"}},
		"a file of OpenAI":    {content.User, content.Document{Source: content.Source{FileID: "f"}, Extra: content.Extra{API: r, JSON: "{}"}}, map[string]string{a: "left out", g: "left out"}},

		"a long URL": {content.User, content.Image{Source: content.Source{URL: "ftp://" + strings.Repeat("x", 5000)}}, all("[image left out")},
		"a data URL": {content.User, content.Image{Source: content.Source{URL: "data:image/png;base64,AAAA"}}, all("[image left out")},
	} {
		t.Run(name, func(t *testing.T) {
			for api, target := range allTargets() {
				got, why := target.Accept(test.role, test.block, false)
				want := test.want[api]
				require.Equal(t, want == "", why == "", "%s: %s", api, why)
				if want == "" {
					require.Equal(t, test.block, got, api)
					continue
				}

				require.Contains(t, fmt.Sprintf("%+v", got), want, api)
			}
		})
	}
}

func all(want string) map[string]string {
	return map[string]string{"anthropic": want, "openai-chat": want, "openai-responses": want, "gemini": want}
}

func TestMediaAreBounded(t *testing.T) {
	big := content.Image{Source: source("image/png", base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n"+strings.Repeat("x", 5<<20))))}
	_, why := targetOf("anthropic").Accept(content.User, big, false)
	require.Contains(t, why, "more than 5242880")
	_, why = targetOf("gemini").Accept(content.User, big, false)
	require.Empty(t, why)
}

func TestCitationsAreSentToTheirOriginOnly(t *testing.T) {
	for _, c := range []struct {
		api, to string
		further content.JSON
		lost    bool
	}{
		{"anthropic", "gemini", `{"citations":[{"url":"x"}]}`, true},
		{"anthropic", "anthropic", `{"citations":[{"url":"x"}]}`, false},
		{"anthropic", "gemini", `{"citations":null}`, false},
		{"openai-responses", "openai-chat", `{"annotations":[{"url":"x"}],"logprobs":[]}`, true},
		{"openai-responses", "anthropic", `{"annotations":[],"logprobs":[]}`, false},
		{"gemini", "anthropic", `{"groundingMetadata":{"webSearchQueries":["x"]}}`, true},
	} {
		further := content.Extra{API: c.api, JSON: c.further}
		for _, block := range []content.Block{content.Text{Text: "x", Extra: further}, content.ToolUse{ID: "a", Name: "f", Input: "{}", Extra: further}} {
			accepted, why := targetOf(c.to).Accept(content.Assistant, block, false)
			if !c.lost {
				require.Equal(t, block, accepted)
				require.Empty(t, why)
				continue
			}
			require.Equal(t, "citations that only "+c.api+" can read are left out", why)
			again, why := targetOf(c.to).Accept(content.Assistant, accepted, false)
			require.Equal(t, accepted, again)
			require.Empty(t, why)
		}
	}
}

func TestThinkingIsSentToItsOriginOnly(t *testing.T) {
	of := func(api string) content.Extra { return content.Extra{API: api, JSON: "{}"} }

	for _, test := range []struct {
		block content.Thinking
		taken string
	}{
		{content.Thinking{Text: "a", Signature: "s", Extra: of("anthropic")}, "anthropic"},
		{content.Thinking{Redacted: "x", Extra: of("anthropic")}, "anthropic"},
		{content.Thinking{Text: "a", Extra: of("anthropic")}, ""},
		{content.Thinking{Text: "a", Extra: of("openai-chat")}, "openai-chat"},
		{content.Thinking{Text: "a", Extra: of("gemini")}, "gemini"},
		{content.Thinking{Text: "a", Extra: of("openai-responses")}, ""},
		{content.Thinking{Text: "a"}, ""},
		{content.Thinking{Text: "a", Signature: "s"}, "anthropic gemini openai-chat openai-responses"},
	} {
		for api, target := range allTargets() {
			got, why := target.Accept(content.Assistant, test.block, false)
			if strings.Contains(test.taken, api) {
				require.Equal(t, content.Block(test.block), got)
				continue
			}

			require.Nil(t, got, "%s %+v", api, test.block)
			require.NotEmpty(t, why)
		}
	}
}

func TestNameFitsWhateverItIs(t *testing.T) {
	for name, want := range map[string]string{
		"get_weather": "get_weather", "get weather": "get_weather", "": "unnamed", "é": "_", "1st": "1st", "a/b\x00c": "a_b_c", "-": "-",
		strings.Repeat("x", 65): strings.Repeat("x", 64), strings.Repeat("é", 65): strings.Repeat("_", 64), "ＡＢ": "__",
	} {
		for api, target := range allTargets() {
			got := target.Name(name)
			require.Regexp(t, target.ToolName, got, api)
			require.Equal(t, got, target.Name(got), api)
			if api == "anthropic" && want != "_" {
				require.Equal(t, want, got)
			}
		}
	}
	require.Equal(t, "_1st", targetOf("gemini").Name("1st"))
	require.Equal(t, "a.b:c", targetOf("gemini").Name("a.b:c"))
	require.Equal(t, "a_b_c", targetOf("openai-chat").Name("a.b:c"))
}

func TestTargetWithoutCallIDAcceptsPlainIDsAlone(t *testing.T) {
	var target dialect.Target
	require.True(t, target.FitsID("call_1-a"))
	require.False(t, target.FitsID("call.1"))
	require.False(t, target.FitsID(""))
}

func TestArgumentsBecomeAnObject(t *testing.T) {
	deep := content.JSON(strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000))
	for input, want := range map[content.JSON]content.JSON{
		"": "{}", " \n": "{}", `{"a":1.0}`: `{"a":1.0}`, " {} ": " {} ", "[1]": `{"input":[1]}`, "null": `{"input":null}`, `{"a":`: `{"input":"{\"a\":"}`,
		`{"a":1,"a":2}`: `{"input":"{\"a\":1,\"a\":2}"}`, "\x00": `{"input":"\u0000"}`, deep: `{"input":"` + deep + `"}`,
	} {
		for _, target := range allTargets() {
			got, _ := target.Accept(content.Assistant, content.ToolUse{Name: "f", Input: input}, false)
			require.Equal(t, want, got.(content.ToolUse).Input)
			require.True(t, got.(content.ToolUse).Input.IsObject())
		}
	}
}

// hostile is words that others might say.
var hostile = []string{
	"", " ", "words", "\x1b[2J\x00\r\n\u202e\u2066", "é\u200d😀", strings.Repeat("long ", 3000), strings.Repeat("x", 9000), `"]}\`, "application/pdf", "audio/wav; x",
	"image/png", "text/plain", "https://a.example/x", "gs://b/x", "data:,x", "anthropic", "openai-chat", "gemini", "\u2028", "\U000E0041\U000E0042", "application/json",
}

func anyOf[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

func randomSource(r *rand.Rand) content.Source {
	s := content.Source{MediaType: anyOf(r, hostile...)}
	word := anyOf(r, hostile[2:]...)
	switch r.IntN(5) {
	case 0:
		s.Text = word
	case 1:
		s.URL = word
	case 2:
		s.FileID = word
	case 3:
		s.Data = word
	default:
		s.Data = anyOf(r, png, wav, pdf, csv, junk)
	}
	return s
}

func randomExtra(r *rand.Rand) content.Extra {
	if r.IntN(2) == 0 {
		return content.Extra{}
	}
	return content.Extra{API: anyOf(r, "anthropic", "openai-chat", "openai-responses", "gemini", "\x1bother"), JSON: `{"a":1}`}
}

func randomJSON(r *rand.Rand, depth int) string {
	word := func() string { return string(wireQuote(anyOf(r, hostile...))) }
	switch n := r.IntN(6); {
	case n == 0 || depth > 12:
		return word()
	case n == 1:
		return anyOf(r, "1", "null", "true", "[]", "{}")
	case n == 2:
		return "[" + randomJSON(r, depth+1) + "," + randomJSON(r, depth+1) + "]"
	}
	names := []string{"type", "text", "content", "query", "input", "output", "data", "results", "title", "\\u001b"}
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	var members []string
	for _, name := range names[:r.IntN(4)] {
		members = append(members, `"`+name+`":`+randomJSON(r, depth+1))
	}
	return "{" + strings.Join(members, ",") + "}"
}

func wireQuote(s string) content.JSON {
	j, err := content.ToJSON(s)
	if err != nil {
		panic(err)
	}
	return j
}

// randomBlock is any block that content.Of takes.
func randomBlock(r *rand.Rand, nested bool) content.Block {
	word := func() string { return anyOf(r, hostile...) }

	switch r.IntN(8) {
	case 0:
		return content.Text{Text: word(), Extra: randomExtra(r)}
	case 1:
		return content.Image{Source: randomSource(r), Extra: randomExtra(r)}
	case 2, 3:
		return content.Document{Source: randomSource(r), Title: word(), Extra: randomExtra(r)}
	case 4:
		if !nested {
			return content.Thinking{Text: word(), Signature: word(), Redacted: word(), Extra: randomExtra(r)}
		}
	case 5:
		if !nested {
			return content.ToolUse{ID: word(), Name: word(), Input: content.JSON(anyOf(r, word(), randomJSON(r, 0))), Extra: randomExtra(r)}
		}
	case 6:
		if !nested {
			inner, err := content.Of(randomBlock(r, true), randomBlock(r, true))
			if err == nil {
				return content.ToolResult{CallID: word(), Content: inner, IsError: r.IntN(2) == 0}
			}
		}
	}

	// Also in place of a block that is not allowed inside a tool result.
	return content.Opaque{API: anyOf(r, "anthropic", "gemini", "other\x1b"), JSON: content.JSON(`{"type":` + string(wireQuote(word())) + `,"content":` + randomJSON(r, 0) + "}")}
}

// TestAcceptIsIdempotent checks for any block and every target: what is accepted is accepted as it is, is a block, and
// what stands in the place of another one is short and shows all it holds.
func TestAcceptIsIdempotent(t *testing.T) {
	r := rand.New(rand.NewPCG(seedtest.First(t), 1))

	for range 3000 {
		made, err := content.Of(randomBlock(r, false))
		if err != nil {
			continue // a source that is empty, for one
		}

		before := made.At(0)
		role := anyOf(r, content.User, content.Assistant)
		nested := r.IntN(2) == 0
		for name, target := range allTargets() {
			once, why := target.Accept(role, before, nested)
			require.Less(t, len(why), 1000)
			requireShown(t, why)
			if why == "" {
				require.Equal(t, before, once)
			}

			if once == nil {
				continue
			}

			_, err := content.Of(once)
			require.NoError(t, err)

			twice, again := target.Accept(role, once, nested)
			require.Equal(t, once, twice, "%s: %+v", name, before)
			require.Empty(t, again)

			// A text in brackets stands for a block that was left out.
			if stand, ok := once.(content.Text); ok && strings.HasPrefix(stand.Text, "[") && why != "" && !strings.Contains(why, "document became") {
				require.Less(t, len(stand.Text), 5000)
				requireShown(t, stand.Text)
			}
		}
	}
}

// requireShown asks that text holds nothing that a reader does not see.
func requireShown(t *testing.T, text string) {
	t.Helper()
	for _, c := range text {
		hidden := unicode.IsControl(c) && c != '\n' && c != '\t' || unicode.Is(unicode.Cf, c) && c != '\u200d'
		require.False(t, hidden, "%q", text)
	}
}

// TestBlocksInToolResultsAreAccepted repairs a conversation with foreign blocks in a tool's result.
func TestBlocksInToolResultsAreAccepted(t *testing.T) {
	inner, err := content.Of(
		content.Opaque{API: "anthropic", JSON: `{"type":"tool_reference","name":"x","text":"found it"}`},
		content.Opaque{API: "anthropic", JSON: `{"type":"secret","data":"1"}`},
		content.Document{Source: source("audio/wav", wav)},
	)
	require.NoError(t, err)

	said := func(role content.Role, blocks ...content.Block) content.Message {
		list, err := content.Of(blocks...)
		require.NoError(t, err)
		return content.Message{Role: role, Blocks: list}
	}

	messages := []content.Message{
		said(content.User, content.Text{Text: "Hi"}), said(content.Assistant, content.ToolUse{ID: "a", Name: "f", Input: "{}"}),
		said(content.User, content.ToolResult{CallID: "a", Content: inner}),
	}

	out, notes := dialect.Repair(messages, dialect.Rules{Accept: targetOf("openai-responses").Accept})
	got := out[2].Blocks.ToolResults()[0].Content
	require.Equal(t, 2, got.Len())
	require.Equal(t, "[tool_reference: name: x\nfound it]\n[audio (audio/wav) left out: the model does not accept audio]", got.Text())
	require.Len(t, notes, 3)
}

func TestFilesOfGeminiAreSentToGeminiAlone(t *testing.T) {
	file := content.Image{Source: content.Source{URL: "https://generativelanguage.googleapis.com/v1beta/files/abc"}}
	for name, target := range allTargets() {
		taken, _ := target.Accept(content.User, file, false)
		require.Equal(t, name == "gemini", taken == content.Block(file), name)
	}
}

func TestVideoIsNotAnImage(t *testing.T) {
	film := content.Image{Source: content.Source{URL: "gs://b/o.mp4", MediaType: "video/mp4"}}
	taken, why := targetOf("gemini").Accept(content.User, film, false)
	require.IsType(t, content.Text{}, taken)
	require.Contains(t, why, "not that of an image")
}
