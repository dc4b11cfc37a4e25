package fake_test

import (
	"strings"
	"testing"

	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/content"
	"github.com/stretchr/testify/require"
)

func TestAnthropicBindsThinkingToTheBlocksBefore(t *testing.T) {
	const (
		tools  = `"tools":[{"name":"f","description":"d","input_schema":{"type":"object"}}]`
		system = `"system":[{"type":"text","text":"s"}]`
		a      = `{"type":"thinking","thinking":"A","signature":"a"}`
		b      = `{"type":"thinking","thinking":"B","signature":"b"}`
		c      = `{"type":"redacted_thinking","data":"c"}`
		d      = `{"type":"thinking","thinking":"D","signature":"d"}`
		other  = `{"type":"thinking","thinking":"from elsewhere","signature":"z"}`
		bound  = "Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, or set " +
			"`thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\"."
	)
	said := func(thinking ...string) string {
		return `{"role":"assistant","content":[` + strings.Join(append(thinking, ""), ",") + `{"type":"text","text":"said"}]}`
	}
	thought := func(blocks ...content.Block) fake.Reply {
		return fake.AnthropicMessage(append(blocks, content.Text{Text: "said"})...)
	}
	join := func(messages ...string) string { return strings.Join(messages, ",") }
	const u1, u2, u3, u4 = `{"role":"user","content":"1"}`, `{"role":"user","content":"2"}`, `{"role":"user","content":"3"}`, `{"role":"user","content":"4"}`
	given := []struct {
		body  string
		reply fake.Reply
	}{
		{request(u1, tools, system), thought(content.Thinking{Text: "A", Signature: "a"}, content.Text{Text: "x"}, content.Thinking{Text: "B", Signature: "b"})},
		{request(join(u1, said(a, `{"type":"text","text":"x"}`, b), u2), tools, system), thought(content.Thinking{Redacted: "c"})},
		{request(join(u1, said(a, `{"type":"text","text":"x"}`, b), u2, said(c), u3), tools, system), thought(content.Thinking{Text: "D", Signature: "d"})},
	}
	first := func(thinking ...string) string { return said(append(thinking, `{"type":"text","text":"x"}`)...) }
	ab := said(a, `{"type":"text","text":"x"}`, b)
	changed := func(old, new string) string {
		return strings.ReplaceAll(request(join(u1, ab, u2, said(c), u3, said(d), u4), tools, system), old, new)
	}
	for name, test := range map[string]struct{ body, says string }{
		"as it was":              {changed("", ""), ""},
		"moved in its answer":    {request(join(u1, first(a, b), u2, said(c), u3), tools, system), ""},
		"the first left out":     {request(join(u1, first(b), u2, said(c), u3), tools, system), ""},
		"the first two left out": {request(join(u1, first(), u2, said(c), u3), tools, system), ""},
		"the last left out":      {request(join(u1, ab, u2, said(c), u3, said(), u4), tools, system), ""},
		"all left out":           {request(join(u1, first(), u2, said(), u3, said(), u4), tools, system), ""},
		"a gap":                  {request(join(u1, ab, u2, said(), u3, said(d), u4), tools, system), "messages.5.content.0: " + bound + " The thinking before it differs."},
		"one put before it":      {request(join(u1, first(other), u2, said(c), u3), tools, system), "messages.3.content.0: " + bound + " The thinking before it differs."},
		"one that is not known":  {request(join(u2, said(other), u3)), ""},
		"said otherwise":         {changed(`"thinking":"A"`, `"thinking":"AA"`), "messages.1.content.0: Invalid `signature` in `thinking` block"},
		"edited before":          {changed(`"content":"1"`, `"content":"one"`), "messages.1.content.0: " + bound + " The messages before it differ."},
		"edited in the middle":   {changed(`"content":"2"`, `"content":"two"`), "messages.3.content.0: " + bound + " The messages before it differ."},
		"edited after":           {changed(`"content":"4"`, `"content":"four"`), ""},
		"a message put before":   {request(join(u3, u1, ab, u2), tools, system), "messages.2.content.0: " + bound + " The messages before it differ."},
		"in a later answer":      {request(join(u1, said(), u2, said(a), u3), tools, system), "messages.3.content.0: " + bound + " The messages before it differ."},
		"another system":         {changed(`"text":"s"`, `"text":"S"`), "messages.1.content.0: " + bound + " The system prompt differs."},
		"the system a string":    {changed(`[{"type":"text","text":"s"}]`, `"s"`), ""},
		"another description":    {changed(`"description":"d"`, `"description":"D"`), "messages.1.content.0: " + bound + " The tools differ."},
		"no tools":               {changed(tools+",", ""), "messages.1.content.0: " + bound + " The tools differ."},
		"written otherwise":      {changed(`"name":"f","description":"d"`, ` "description" : "d","name":"f"`), ""},
		"marked":                 {changed(`"text":"s"`, `"text":"s","cache_control":{"type":"ephemeral"}`), ""},
		"a marked tool":          {changed(`"description":"d"`, `"description":"d","cache_control":{"type":"ephemeral"}`), ""},
		"a marked message":       {changed(`"content":"1"`, `"content":[{"type":"text","text":"1","cache_control":{"type":"ephemeral"}}]`), ""},
		"other options":          {changed(`"max_tokens":5000`, `"max_tokens":6000,"tool_choice":{"type":"none"},"metadata":{}`), ""},
		"to be dropped": {changed(`"content":"1"`, `"content":"one"`)[:1] + `"thinking":{"block_binding":{"prefix_mismatch_behavior":"drop_block"}},` +
			changed(`"content":"1"`, `"content":"one"`)[1:], ""},
		"to be refused": {changed(`"content":"1"`, `"content":"one"`)[:1] + `"thinking":{"block_binding":{"prefix_mismatch_behavior":"error"}},` +
			changed(`"content":"1"`, `"content":"one"`)[1:], "messages.1.content.0: " + bound + " The messages before it differ."},
	} {
		t.Run(name, func(t *testing.T) {
			var replies []fake.Reply
			for _, g := range given {
				replies = append(replies, g.reply)
			}
			served := fake.Anthropic(append(replies, thought())...)
			told := fake.Anthropic(thought())
			url := serve(t, served)
			for _, g := range given {
				status, _, answer := post(t, url, g.body)
				require.Equal(t, 200, status, answer)
				told.Gave([]byte(g.body), g.reply)
			}
			for _, url := range []string{url, serve(t, told)} {
				status, _, answer := post(t, url, test.body)
				if test.says == "" {
					require.Equal(t, 200, status, answer)
					continue
				}
				require.Equal(t, 400, status)
				require.Contains(t, unquoted(answer), test.says)
			}
		})
	}
}

func unquoted(answer string) string { return strings.ReplaceAll(answer, `\"`, `"`) }

// What is thought while older thinking is dropped is bound to what was left.
func TestAnthropicBindsThinkingToThinkingThatIsKept(t *testing.T) {
	thought := func(signature string) fake.Reply {
		return fake.AnthropicMessage(content.Thinking{Text: "t", Signature: signature}, content.Text{Text: "said"})
	}
	said := func(signature string) string {
		return `{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"` + signature + `"},{"type":"text","text":"said"}]}`
	}
	const u, edited, plain = `{"role":"user","content":"1"}`, `{"role":"user","content":"one"}`, `{"role":"assistant","content":[{"type":"text","text":"said"}]}`
	drop := `"thinking":{"block_binding":{"prefix_mismatch_behavior":"drop_block"}}`
	model := fake.Anthropic(thought("a"), thought("b"), thought("c"), thought("d"))
	url := serve(t, model)
	for _, step := range []struct {
		body   string
		status int
	}{
		{request(u), 200},
		{request(edited + "," + said("a") + "," + u), 400},
		{request(edited+","+said("a")+","+u, drop), 200},
		{request(edited + "," + plain + "," + u + "," + said("b") + "," + u), 200},
		{request(edited+","+said("a")+","+u+","+said("b")+","+u, drop), 200},
		{request(u + "," + said("a") + "," + u + "," + said("b") + "," + u), 400},
	} {
		status, _, answer := post(t, url, step.body)
		require.Equal(t, step.status, status, "%s\n%s", step.body, answer)
	}
}
