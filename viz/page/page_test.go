package page

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/viz/page/internal/web"
)

func start() dag.DAG {
	return dag.New().WithSource(node.Counting(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)))
}

// written is what a page holds.
func written(t *testing.T, d dag.DAG, o *Options) (string, web.Config, web.Patch) {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, Write(&b, d, o))
	var c web.Config
	var p web.Patch
	for id, into := range map[string]any{"config": &c, "patch": &p} {
		_, data, ok := strings.Cut(b.String(), `<script type="application/json" id="`+id+`">`)
		require.True(t, ok)
		data, _, _ = strings.Cut(data, "</script>")
		require.NoError(t, json.Unmarshal([]byte(data), into))
	}
	return b.String(), c, p
}

func TestPolicyDecidesWhatTheCacheCouldHold(t *testing.T) {
	answered := func(text string, read int64) node.Message {
		return node.Message{Role: content.Assistant, Blocks: content.Words(text), Answer: node.Answer{
			API: "openai-responses", Model: "gpt-5.6", Usage: content.Usage{Input: 5000, CacheRead: read},
		}}
	}
	d := start().User("Hi.").Append(answered("Hello.", 0)).User("And now?").Append(answered("Now.", 0))
	predicted := func(o *Options) int64 {
		_, _, p := written(t, d, o)
		return p.Nodes[3].Cache.Predicted
	}
	require.Equal(t, int64(5000), predicted(nil))
	require.Zero(t, predicted(&Options{Cache: api.CacheOff}))
}

// joined puts the saved conversation together as the page does.
func joined(c web.Config, p web.Patch) string {
	var b strings.Builder
	before := false
	for _, piece := range c.Static.File {
		key, ok := piece.(float64)
		switch {
		case !ok:
			b.WriteString(piece.(string))
		case before:
			b.WriteString(",\n")
			fallthrough
		default:
			b.WriteString(p.Nodes[int(key)].Raw.String())
		}
		before = ok
	}
	return b.String()
}

func TestTheSavedFormIsInThePageByteForByte(t *testing.T) {
	elsewhere := dag.New().User("Unseen.")
	d := start().System("Be brief.").User("Name a tree.").Assistant("An oak.")
	for name, d := range map[string]dag.DAG{
		"plain":            d,
		"empty":            start(),
		"with metadata":    d.WithMetadata("x", "y"),
		"with a named end": d.WithRef("first").Back(1).User("Name a flower."),
		"of a sub-agent":   start().SubGraph("help", elsewhere).User("Thanks."),
		"redacted":         d.Redact(d.Head().ID()).User("Why?"),
		"joined, redacted": d.User("Why?").Join(d.Redact(d.Head().ID()).User("So?")),
		"joined, whole":    d.Redact(d.Head().ID()).User("So?").Join(d.User("Why?")),
	} {
		_, c, p := written(t, d, nil)
		var saved bytes.Buffer
		require.NoError(t, d.Write(&saved))
		require.Equal(t, saved.String(), joined(c, p), name)
	}
}

func TestNodesThatOnlyARefReachesAreShown(t *testing.T) {
	d := start().User("Name a tree.")
	d = d.Assistant("An oak.").WithRef("oak").AtRef("oak").Back(1).User("Name a flower.").WithRef("flower").Assistant("A rose.")
	_, c, p := written(t, d, nil)
	require.Equal(t, []int{1, 3}, p.Heads, "what others go on from is no end")
	require.Equal(t, []web.Ref{{Name: "flower", Keys: []int{0}}, {Name: "oak", Keys: []int{3}}}, p.Refs)
	saved, err := dag.Read(strings.NewReader(joined(c, p)))
	require.NoError(t, err)
	require.Len(t, saved.Heads(), 1, "what is saved has the heads that it had")
}

func TestAPageShowsTheCostOfAnAnswer(t *testing.T) {
	answer := node.Answer{Model: "dear", Usage: content.Usage{Input: 1000, Output: 100}}
	oak := node.Message{Role: content.Assistant, Blocks: content.Words("An oak."), Answer: answer}
	d := start().User("Name a tree.").Append(oak)
	_, _, p := written(t, d, &Options{Prices: api.Prices{"dear": {Input: 2, Output: 10}}})
	require.NotNil(t, p.Nodes[1].Cost)
	require.InDelta(t, 0.003, *p.Nodes[1].Cost, 1e-12)

	_, _, p = written(t, d, nil)
	require.Nil(t, p.Nodes[1].Cost)
}

func TestRequestsAreStoredAsDifferences(t *testing.T) {
	d := start().User("日本 😀 one").Assistant("First.").User("two").Assistant("Second.").User("three").Assistant("Third.")
	request := func(d dag.DAG, _ *node.Node) ([]byte, error) {
		var said []string
		for _, m := range d.Messages() {
			said = append(said, m.Blocks.Text())
		}
		return fmt.Appendf(nil, "{%s😀}", strings.Join(said, "|")), nil
	}
	_, c, _ := written(t, d, &Options{Request: request})
	require.Equal(t, []web.Request{
		{Key: 1, Base: -1, Middle: "{日本 😀 one😀}"},
		{Key: 3, Base: 1, Prefix: 10, Suffix: 3, Middle: "|First.|two"},
		{Key: 5, Base: 3, Prefix: 21, Suffix: 3, Middle: "|Second.|three"},
	}, c.Static.Requests)
}

// requestsOf returns the requests of d's page within a limit, and why some are missing.
func requestsOf(
	t *testing.T, d dag.DAG, limit budget, request func(dag.DAG, *node.Node) ([]byte, error),
) ([]web.Request, string) {
	t.Helper()
	m := web.NewModel()
	_, err := m.Update(d)
	require.NoError(t, err)
	nodes, keys := drawn(m, d)
	return requests(d, nodes, keys, limit, request)
}

// hundredBytes is the same request for each response.
func hundredBytes(dag.DAG, *node.Node) ([]byte, error) { return bytes.Repeat([]byte("x"), 100), nil }

func TestAPageHasAllRequestsWhoseDifferencesFit(t *testing.T) {
	d := start()
	for range 10 {
		d = d.User("More.").Assistant("There.")
	}
	limit := budget{made: 1000, stored: 200}
	got, missing := requestsOf(t, d, limit, hundredBytes)
	require.Len(t, got, 10)
	require.Empty(t, missing)
	require.Len(t, got[0].Middle, 100)
	for i, r := range got[1:] {
		require.Equal(t, web.Request{Key: 2*i + 3, Base: 2*i + 1, Prefix: 100}, r)
	}

	limit.made--
	got, missing = requestsOf(t, d, limit, hundredBytes)
	require.Len(t, got, 9, "making one more takes too much")
	require.Contains(t, missing, "last responses")

	// A request and the one that it is compared with are held at the same time.
	got, missing = requestsOf(t, d, budget{made: 1000, stored: 99}, hundredBytes)
	require.Empty(t, got)
	require.Contains(t, missing, "last responses")
}

func TestALongConversationHasTheRequestsOfItsLastAnswers(t *testing.T) {
	d := start()
	for range 10 {
		d = d.User("More.").Assistant("There.")
	}

	// No two of these requests have anything in common.
	different := func(before dag.DAG, _ *node.Node) ([]byte, error) {
		return bytes.Repeat([]byte{byte('a' + before.Len())}, 100), nil
	}
	for _, c := range []struct {
		limit   budget
		request func(dag.DAG, *node.Node) ([]byte, error)
		middles []int
	}{
		{budget{made: 400, stored: 1000}, hundredBytes, []int{100, 0, 0, 0}},
		{budget{made: 5000, stored: 400}, different, []int{100, 100, 100, 100}},
	} {
		got, missing := requestsOf(t, d, c.limit, c.request)
		require.Contains(t, missing, "last responses")
		require.Len(t, got, 4)
		for i, r := range got {
			require.Equal(t, 13+2*i, r.Key)
			require.Len(t, r.Middle, c.middles[i])
		}
		require.Equal(t, -1, got[0].Base)
	}
}

func TestALongConversationHasTheRequestsOfItsFailures(t *testing.T) {
	d := start()
	for i := range 10 {
		d = d.User("More.").Assistant("I look.", content.ToolUse{ID: fmt.Sprint(i), Name: "search", Input: "{}"}).
			CloseTools(node.ToolExecution{Index: 1, Result: content.Words("no"), IsError: i == 3})
	}
	got, missing := requestsOf(t, d, budget{made: 400, stored: 1000}, hundredBytes)
	require.Contains(t, missing, "first failures")

	var keys []int
	for _, r := range got {
		keys = append(keys, r.Key)
	}
	require.Equal(t, []int{9, 13, 33, 37}, keys, "the failed call's request, the one before it, and the last two")
	require.Equal(t, 9, got[1].Base)
}

// The request of a response is made from everything before it, so a failed one costs as much as one that is shown.
func TestRequestsThatFailCountAgainstTheLimit(t *testing.T) {
	d := start()
	for range 20 {
		d = d.User("More.").Assistant("There.")
	}
	failing := func(dag.DAG, *node.Node) ([]byte, error) { return nil, errors.New("nobody asked") }
	limit := 512 * (d.Head().Depth() + d.Head().Depth() - 2)
	got, missing := requestsOf(t, d, budget{made: limit, stored: 1000}, failing)
	require.Len(t, got, 3, "the last two, and the one that is over the limit")
	require.Contains(t, missing, "last responses")
}

func TestUnknownRequestHasItsReason(t *testing.T) {
	d := start().User("Hi.").Assistant("Hello.").User("Bye.").Assistant("So long.")
	_, c, _ := written(t, d, &Options{Request: func(d dag.DAG, _ *node.Node) ([]byte, error) {
		if len(d.Messages()) > 1 {
			return []byte("\xff"), nil
		}
		return nil, errors.New("nobody asked")
	}})
	require.Equal(t, []web.Request{
		{Key: 1, Base: -1, Missing: "The request is not known: nobody asked"},
		{Key: 3, Base: -1, Missing: "The request is not UTF-8 and cannot be shown byte for byte."},
	}, c.Static.Requests)
}

func TestASubAgentIsAskedWithoutWhatTheConversationSaysOfItself(t *testing.T) {
	child := start().User("Why?").Assistant("Because.")
	d := dag.New().WithMetadata("whose", "outer").SubGraph("help", child).User("Well?").Assistant("Well.")
	_, c, _ := written(t, d, &Options{Request: func(d dag.DAG, _ *node.Node) ([]byte, error) {
		return []byte(d.Metadata().Get("whose") + content.JSON("/") + content.JSON(d.Text())), nil
	}})
	require.Equal(t, "/", c.Static.Requests[0].Middle)
	require.Equal(t, `"outer"/`, c.Static.Requests[1].Middle)
}

func TestTheSameConversationGivesTheSamePage(t *testing.T) {
	d := start().User("Name a tree.")
	d = d.Assistant("An oak.").Join(d.Assistant("A fir."))
	one, _, _ := written(t, d, nil)
	two, _, _ := written(t, d, nil)
	require.Equal(t, one, two)
}

func TestErrorsAreThoseOfTheChainAndTheWriter(t *testing.T) {
	require.ErrorContains(t, Write(&bytes.Buffer{}, start().Back(1), nil), "no such exchange")
	require.ErrorIs(t, Write(full{}, start().User("Hi."), nil), errFull)
}

var errFull = errors.New("the disk is full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestSharedEndsCutNoCharacterInHalf(t *testing.T) {
	for _, c := range []struct {
		a, b       string
		start, end int
	}{
		{"", "", 0, 0},
		{"abc", "abc", 3, 0},
		{"abc", "abXc", 2, 1},
		{"aé", "aè", 1, 0},           // é and è begin with the same byte
		{"\u00a9x", "\u0169x", 0, 1}, // © and ũ end with the same byte
		{"😀", "😁", 0, 0},
	} {
		start, end := sharedEnds(c.a, c.b)
		require.Equal(t, []int{c.start, c.end}, []int{start, end}, "%q %q", c.a, c.b)
	}
	const wide = "a😀é\uffff\U00010000"
	require.Equal(t, len(utf16.Encode([]rune(wide))), units(wide))
}

func BenchmarkWrite(b *testing.B) {
	for _, n := range []int{100, 2_000, 20_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			d := talk(n)
			var out bytes.Buffer
			for b.Loop() {
				out.Reset()
				if err := Write(&out, d, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/node")
			b.ReportMetric(float64(out.Len())/float64(n), "bytes/node")
		})
	}
}

// talk is a conversation of n nodes: turns with two calls side by side, now and then a branch.
func talk(n int) dag.DAG {
	tool := content.Tool{Name: "search", Schema: `{"type":"object"}`}
	d := start().System("You help.").Tools(tool)
	branches := []dag.DAG{}
	for i := 0; d.Len()+len(branches) < n; i++ {
		if i%20 == 19 {
			branches = append(branches, d.User("Another way?"))
		}
		d = d.User(fmt.Sprintf("Question %d about trees?", i)).
			Assistant("I look it up.",
				content.ToolUse{ID: fmt.Sprintf("a%d", i), Name: "search", Input: `{"query":"trees"}`},
				content.ToolUse{ID: fmt.Sprintf("b%d", i), Name: "search", Input: `{"query":"leaves"}`}).
			CloseTools(node.ToolExecution{Index: 1, Result: content.Words("Oak, fir, elm.")},
				node.ToolExecution{Index: 2, Result: content.Words("no leaves"), IsError: i%50 == 7}).
			Assistant("There are oaks, firs and elms, and they have been here for a long time.")
	}
	return d.Join(branches...)
}
