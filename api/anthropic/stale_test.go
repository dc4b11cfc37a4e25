package anthropic

import (
	"testing"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

func TestStaleThinkingIsLeftOut(t *testing.T) {
	thinking := content.Thinking{Text: "hm", Signature: "c2ln"}
	call := content.ToolUse{ID: "a", Name: "f", Input: `{}`}
	d := dag.New().User("1")
	d = d.Append(node.Message{Role: content.Assistant, Blocks: must(thinking, call), Answer: node.Answer{Seen: d.Seen()}})
	d = d.User("", content.ToolResult{CallID: "a", Content: content.Words("2")})
	changed := d.Tools(content.Tool{Name: "f", Schema: `{"type":"object"}`})
	const binding = `"block_binding":{"prefix_mismatch_behavior":"drop_block"}`
	drop := func(o api.Options, more string) *Options {
		o.Body = content.JSON(`{"thinking":{` + more + binding + `}}`)
		return &Options{Options: o}
	}
	for _, test := range []struct {
		name string
		d    dag.DAG
		o    *Options
		sent bool   // the thinking
		asks string // the "thinking" of the request
	}{
		{"what holds", d, nil, true, ""},
		{"what holds, and the model thinks", d, &Options{Options: api.Options{Thinking: "2000"}}, true, `{"type":"enabled","budget_tokens":2000}`},
		{"what does not hold", changed, nil, false, ""},
		{"in a loop that now begins without", changed, &Options{Options: api.Options{Thinking: "2000"}}, false, ""},
		{"and may begin without", changed, &Options{Options: api.Options{Thinking: api.ThinkAuto}}, false, `{"type":"adaptive"}`},
		{"no markers", changed, &Options{Options: api.Options{Cache: api.CacheOff}}, false, ""},
		{"prefilled", changed, &Options{Prefill: true}, false, ""},
		{"to be dropped", changed, drop(api.Options{}, ""), false, `{` + binding + `}`},
		{"to be dropped while the model thinks", changed, drop(api.Options{Thinking: api.ThinkAuto}, ""), false, `{"type":"adaptive",` + binding + `}`},
		{"to be dropped by a whole body", changed, drop(api.Options{Thinking: "2000"}, `"type":"adaptive",`), false, `{"type":"adaptive",` + binding + `}`},
		{"to be dropped in a loop that then begins without", changed, drop(api.Options{Thinking: "2000"}, ""), false, `{` + binding + `}`},
		{"to be dropped before a forced call", changed, drop(api.Options{Thinking: api.ThinkAuto, ToolChoice: api.ToolsAny}, ""), false, `{` + binding + `}`},
		{"to be refused", changed, &Options{Options: api.Options{Body: `{"thinking":{"block_binding":{"prefix_mismatch_behavior":"error"}}}`}}, false,
			`{"block_binding":{"prefix_mismatch_behavior":"error"}}`},
		{"nonsense", changed, &Options{Options: api.Options{Body: `{"thinking":{"block_binding":1}}`}}, false, `{"block_binding":1}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			said := test.d.Transcript()
			body, notes, err := Body(api.Request{System: said.System, Tools: said.Tools, Messages: said.Messages}, "claude-test", test.o)
			require.NoError(t, err)
			require.NoError(t, fake.CheckAnthropic(body), string(body))
			if test.sent {
				require.Contains(t, string(body), `"signature":"c2ln"`)
			} else {
				require.NotContains(t, string(body), "c2ln")
				require.Contains(t, notes, api.RepairNote{Kind: "dropped", Message: 1, Detail: "thinking that belongs to an earlier transcript, which has changed"})
			}
			if test.asks == "" {
				require.NotContains(t, string(body), `"thinking":{`)
			} else {
				require.Contains(t, string(body), `"thinking":`+test.asks)
			}
		})
	}
}
