package sessions_test

import (
	"fmt"
	"log"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag/sessions"
	"github.com/plait-dev/plait/node"
)

// A file for fine-tuning has a conversation a line.
func ExampleImport_chat() {
	file, err := os.Open("testdata/chat.jsonl")
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	in, err := sessions.Import(sessions.Chat, file, nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range in.Conversations {
		fmt.Println(d)
		fmt.Println()
	}
	fmt.Println(in.Notes)
	// Output:
	// ▫ record    chat parallel_tool_calls: true
	// ◆ tools     list_blooms
	// ◆ system    You keep a garden diary.
	// ○ user      What is in bloom?
	// ● assistant → list_blooms ×2
	// ├─╮
	// ▪ │ list_blooms(month: "May") → lilac
	// │ ▪ list_blooms(month: "June") → roses
	// ├─╯
	// ◇ results   2
	// ● assistant Lilac, then roses.
	//
	// ○ user      And in winter?
	// ● assistant Snowdrops, if it is mild.
	//
	// [line 1: record: the members beside the messages: parallel_tool_calls]
}

func TestChatFileIsSound(t *testing.T) {
	in := open(t, sessions.Chat, "testdata/chat.jsonl")
	require.Len(t, in.DAG.Heads(), 2)
	for _, d := range in.Conversations {
		require.Empty(t, d.Validate())
		undeclaredOnly(t, d)
	}
	def := in.Main().ToolDefs()[0]
	require.Equal(t, content.Extra{API: "openai-chat", JSON: `{"strict":true}`}, def.Extra)
	require.Equal(t, content.JSON(`{"month": "May"}`), in.Main().Messages()[1].Blocks.ToolUses()[0].Input, "arguments keep their bytes")
	require.Equal(t, content.JSON(`{"weight":1}`), in.Main().Head().Meta().Get("chat"))
	require.NotEqual(t, in.Conversations[0].Head().ID(), in.Conversations[1].Head().ID())
}

func TestChatShapesOfAFile(t *testing.T) {
	user, answer := `{"role":"user","content":"a"}`, `{"role":"assistant","content":"b"}`
	for name, text := range map[string]string{
		"a list":                    `[` + user + `,` + answer + `]`,
		"a list over lines":         "[\n" + user + ",\n" + answer + "\n]\n",
		"commas first":              "[" + user + "\n," + answer + "]",
		"an object":                 `{"messages":[` + user + `,` + answer + `]}`,
		"an object over lines":      "\uFEFF{\r\n\"messages\": [\r\n" + user + "," + answer + "]}",
		"a message a line":          user + "\n\n" + answer,
		"a list in the only line":   "\n[" + user + "," + answer + "]\n",
		"parts":                     `[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":["b"]}]`,
		"ended by an empty message": `[` + user + `,` + answer + `,{"role":"user","content":""}]`,
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, []string{"u:a", "a:b"}, spell(imported(t, sessions.Chat, text).Main())[:2])
		})
	}
	in := imported(t, sessions.Chat, user+"\n["+answer+"]\n"+user)
	require.Len(t, in.Conversations, 3)
}

func TestChatMessages(t *testing.T) {
	in := imported(t, sessions.Chat, `[
		{"role":"developer","content":[{"type":"text","text":"Be kind."}]},
		{"role":"user","name":"kim","timestamp":"2026-01-02T03:04:05Z","content":[
			{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA","detail":"low"}},
			{"type":"image_url","image_url":{"url":"https://example.org/a.png"}},
			{"type":"input_audio","input_audio":{"data":"AAAA","format":"mp3"}},
			{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,AAAA"}},
			{"type":"file","file":{"file_id":"file-1"}},
			{"type":"hologram","x":1}, 7]},
		{"role":"assistant","content":"","reasoning_content":"hm","refusal":"no","audio":{"id":"au"},"tool_calls":[
			{"id":"c1","type":"custom","custom":{"name":"sh","input":"ls"}},
			{"id":"c2","type":"function","function":{"name":"f","arguments":{"x":1}}},
			{"id":"c3","type":"telepathy"}]},
		{"role":"tool","tool_call_id":"c2","content":[{"type":"text","text":"two"}]},
		{"role":"tool","tool_call_id":"c1","content":"one"},
		{"role":"tool","tool_call_id":"c9","content":"nine"},
		{"role":"assistant","content":null,"function_call":{"name":"g","arguments":"{}"}},
		{"role":"function","name":"g","content":"old"}]`)
	d := in.Main()
	require.Equal(t, []string{"Be kind."}, d.SystemPrompts())
	m := d.Messages()
	image := m[0].Blocks.At(0).(content.Image)
	require.Equal(t, content.Image{Source: content.Source{MediaType: "image/png", Data: "AAAA"}, Extra: content.Extra{API: "openai-chat", JSON: `{"detail":"low"}`}}, image)
	require.Equal(t, "https://example.org/a.png", m[0].Blocks.At(1).(content.Image).Source.URL)
	require.Equal(t, "audio/mpeg", m[0].Blocks.At(2).(content.Document).Source.MediaType)
	require.Equal(t, "a.pdf", m[0].Blocks.At(3).(content.Document).Title)
	require.Equal(t, "file-1", m[0].Blocks.At(4).(content.Document).Source.FileID)
	require.Equal(t, content.Opaque{API: "openai-chat", JSON: `{"type":"hologram","x":1}`}, m[0].Blocks.At(5))
	require.Equal(t, content.Opaque{API: "chat", JSON: `{"value":7}`}, m[0].Blocks.At(6))
	require.Equal(t, content.Thinking{Text: "hm", Extra: content.Extra{API: "openai-chat", JSON: `{"field":"reasoning_content"}`}}, m[1].Blocks.At(0))
	require.Equal(t, "no", m[1].Blocks.At(1).(content.Text).Text)
	require.Equal(t, content.JSON(`"ls"`), m[1].Blocks.ToolUses()[0].Input)
	require.Equal(t, content.JSON(`{"x":1}`), m[1].Blocks.ToolUses()[1].Input)
	require.Equal(t, []string{"u:!c1=one!c2=two", "u:!c9=nine", "a:?", "u:!=old"}, spell(d)[2:])
	for _, n := range d.Nodes() {
		if said, ok := n.Message(); ok && said.Role == content.User {
			require.Equal(t, content.JSON(`{"name":"kim","timestamp":"2026-01-02T03:04:05Z"}`), n.Meta().Get("chat"))
			require.Equal(t, 2026, n.Time().Year())
			break
		}
	}
	require.Contains(t, fmt.Sprint(in.Notes), "telepathy")
}

func TestChatFileWithDataAndIDIsNoted(t *testing.T) {
	in := imported(t, sessions.Chat, `[{"role":"user","content":[
		{"type":"file","file":{"file_data":"data:application/pdf;base64,AAAA","file_id":"file-1"}},
		{"type":"file","file":{"file_data":"data:,AAAA","file_id":"file-2"}},
		{"type":"file","file":{"file_id":"file-3","filename":7}}]}]`)
	blocks := in.Main().Messages()[0].Blocks
	require.Equal(t, content.Document{Source: content.Source{MediaType: "application/pdf", Data: "AAAA"}}, blocks.At(0))
	require.Contains(t, blocks.At(1).(content.Opaque).JSON, "data:,AAAA", "data in an unknown form is kept as it is")
	require.Contains(t, blocks.At(2).(content.Opaque).JSON, `"filename":7`)

	require.Len(t, in.Notes, 3)
	require.Equal(t, sessions.NoteLeftOut, in.Notes[0].Kind)
	require.Contains(t, in.Notes[0].Detail, `"file-1"`)
	require.Equal(t, sessions.NoteOpaque, in.Notes[1].Kind)
	require.Equal(t, sessions.NoteOpaque, in.Notes[2].Kind)
}

func TestChatErrors(t *testing.T) {
	user := `{"role":"user","content":"a"}`
	for name, c := range map[string]struct {
		text string
		line int
		is   error
		left string
	}{
		"a broken line":     {user + "\n{\"role\"]", 2, sessions.ErrSyntax, "u:a"},
		"a broken document": {"{\n\"messages\": [\n}", 3, sessions.ErrSyntax, ""},
		"no message":        {user + "\n{}", 2, sessions.ErrShape, "u:a"},
		"a strange role":    {user + "\n" + `{"role":"ghost","content":"boo"}`, 2, sessions.ErrShape, "u:a"},
		"a number":          {"7", 1, sessions.ErrShape, ""},
		"bad calls":         {user + "\n" + `{"role":"assistant","tool_calls":7}`, 2, sessions.ErrShape, "u:a"},
		"bad content":       {user + "\n" + `{"role":"user","content":{}}`, 2, sessions.ErrShape, "u:a"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := sessions.Import(sessions.Chat, strings.NewReader(c.text), nil)
			require.ErrorIs(t, err, c.is)
			var e *sessions.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, c.line, e.Line)
			in, err := sessions.Import(sessions.Chat, strings.NewReader(c.text), &sessions.Options{Lenient: true})
			require.NoError(t, err)
			sound(t, in)
			require.Equal(t, c.left, strings.Join(spell(in.Main()), " "))
			_, kept := in.Main().Head().Payload().(node.Custom)
			require.True(t, kept, "what cannot be read is kept")
		})
	}
}

func TestChatDeclarations(t *testing.T) {
	in := imported(t, sessions.Chat, `{"messages":[{"role":"user","content":"a"}],"functions":[{"name":"f"}],"tools":[{"type":"function","function":{"name":"g","parameters":null}},{"type":"web_search","x":1},{"type":"function","function":{"name":"a b"}},7]}`)
	defs := in.Main().ToolDefs()
	require.Len(t, defs, 3)
	require.Equal(t, content.JSON(`{"type":"object","properties":{}}`), defs[0].Schema)
	require.True(t, defs[1].Server())
	require.Equal(t, "f", defs[2].Name)
	require.Contains(t, in.Main().Nodes()[0].Payload().(node.Custom).JSON, "a b", "what cannot be declared is kept")
}
