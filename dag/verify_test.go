package dag_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/growthtest"
	"github.com/plait-dev/plait/internal/seedtest"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

// found is what Verify finds, in a line each.
func found(v dag.Verification) []string {
	var out []string
	for _, f := range v.Findings {
		out = append(out, f.Node.Kind()+": "+string(f.Kind))
	}
	return out
}

// lines is the lines of the nodes in a document.
func lines(text string) []string {
	all := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	return all[1 : len(all)-1]
}

func TestVerifyOfAnUnchangedConversation(t *testing.T) {
	for name, d := range map[string]dag.DAG{"empty": {}, "built": sample(t), "loaded": read(t, written(t, sample(t)))} {
		v := d.Verify()
		require.True(t, v.OK(), "%s: %v", name, v)
		require.Equal(t, len(lines(written(t, sample(t))))*min(d.Len(), 1), v.Nodes, name)
		require.Empty(t, v.Redacted)
		require.Empty(t, v.Unknown)
	}
	require.Equal(t, "0 nodes: every digest is correct", dag.New().Verify().String())
}

// TestVerifyReportsEachChangedNode changes each node of a file in turn, those of children, of refs and out of reach
// among them.
func TestVerifyReportsEachChangedNode(t *testing.T) {
	d := sample(t).WithRef("here")
	d = d.Back(1).User("On a ref alone.").WithRef("there").WithHeads(d.Heads()...)
	lost := d.User("Nobody names me.")
	text := written(t, d.Join(lost.Join(dag.New())))
	text = strings.Replace(text, `"`+lost.Head().ID().String()+`"],"refs"`, `],"refs"`, 1)
	text = strings.Replace(text, `,],"refs"`, `],"refs"`, 1)
	all := lines(text)
	require.Greater(t, len(all), len(lines(written(t, d))))
	for i, was := range all {
		n := strings.Index(was, `"sha256:`) + len(`"sha256:`)
		forged := "0"
		if was[n:n+1] == "0" {
			forged = "1"
		}
		edited := was[:n] + forged + was[n+1:]
		v := read(t, strings.Replace(text, was, edited, 1)).Verify()
		require.Equal(t, len(all), v.Nodes)
		require.False(t, v.OK())
		id := strings.Split(was, `"`)[3]
		require.Equal(t, id, v.Findings[0].Node.ID().String(), "node %d", i)
		require.Equal(t, dag.WrongDigest, v.Findings[0].Kind)
		require.Contains(t, v.Findings[0].Detail, edited[n:n+64])
		require.Contains(t, v.Findings[0].Detail, was[n:n+64], "what it should be")
		for _, f := range v.Findings[1:] { // only what is made of that digest
			named := slices.ContainsFunc(f.Node.Parents(), func(p *node.Node) bool { return p.ID().String() == id }) ||
				slices.ContainsFunc(f.Node.Children().Slice(), func(h *node.Node) bool { return h.ID().String() == id })
			require.True(t, named, "%s is not after %s", f.Node, id)
		}
	}
}

func TestVerifyReportsChangedResultsAndTheirCopies(t *testing.T) {
	d := counting().Assistant("", content.ToolUse{ID: "a", Name: "f"}, content.ToolUse{ID: "b", Name: "f"}).
		CloseTools(node.ToolExecution{Index: 0, Result: content.Words("ten")}, node.ToolExecution{Index: 1, Result: content.Words("eleven")}).User("Go on.")
	text := written(t, d)
	v := read(t, strings.Replace(text, `"ten"`, `"one"`, 1)).Verify()
	require.Equal(t, []string{"tool_execution: digest mismatch", "message: digest mismatch", "message: wrong shared result"}, found(v))
	require.Equal(t, "result 0 is that of "+v.Findings[0].Node.String(), v.Findings[2].Detail)
	require.Equal(t, d.Nodes()[3].ID(), v.Findings[1].Node.ID())

	v = read(t, strings.Replace(text, `"tool":"f","result":[{"type":"text","text":"ten"`, `"tool":"g","result":[{"type":"text","text":"ten"`, 1)).Verify()
	require.Equal(t, []string{"tool_execution: digest mismatch"}, found(v), "the result was not touched")
	v = read(t, strings.Replace(text, `"result_of":1`, `"result_of":0`, 1)).Verify()
	require.Equal(t, []string{"message: digest mismatch"}, found(v), "a reference to another execution")
	v = read(t, strings.Replace(text, `{"type":"tool_result","result_of":0}`, `{"type":"tool_result","call_id":"a","content":[{"type":"text","text":"ten"}]}`, 1)).Verify()
	require.Empty(t, found(v), "the same result, written out")
}

func TestTwoNodesWithOneIDAreBothVerified(t *testing.T) {
	one, other := counting().User("one"), counting().User("other")
	d := one.Assistant("x").SubGraph("again", other.Assistant("y").Join(one))
	v := d.Verify()
	require.Equal(t, []string{"message: duplicate node id", "message: duplicate node id"}, found(v)[:2])
	same := read(t, written(t, one))
	v = one.SubGraph("again", same).Verify()
	require.True(t, v.OK(), "a conversation and its copy")
	require.Equal(t, 3, v.Nodes)
}

func TestVerifyListsNodesItCannotCheck(t *testing.T) {
	d := read(t, foreign(t))
	v := d.Verify()
	require.Equal(t, []string{"message: digest mismatch"}, found(v), "a block of a newer version is no part of the digest that it had")
	require.Len(t, v.Unknown, 2, "also out of reach")
	require.Contains(t, v.String(), "planet 00000001: a kind that this version does not know")

	d = counting().User("SECRET").Assistant("x")
	d = d.Redact(d.Nodes()[0].ID())
	for _, d := range []dag.DAG{d, read(t, written(t, d))} {
		v = d.Verify()
		require.True(t, v.OK())
		require.Equal(t, []*node.Node{d.Nodes()[0]}, v.Redacted)
	}
	forged := strings.Replace(written(t, counting().User("SECRET")), `,"digest"`, `,"redacted":true,"digest"`, 1)
	d = read(t, forged)
	v = d.Verify()
	require.Equal(t, []string{"message: marked as redacted but has content"}, found(v))
	require.Empty(t, v.Redacted)
	require.Equal(t, v.Findings, d.Validate())
	v = read(t, strings.Replace(forged, "SECRET", "other", 1)).Verify()
	require.Equal(t, []string{"message: marked as redacted but has content", "message: digest mismatch"}, found(v))
}

func TestVerificationAsTextAndAsJSON(t *testing.T) {
	d := counting().User("ten").Assistant("x").User("y")
	id := d.Nodes()[0].ID().String()
	d = read(t, strings.Replace(written(t, d), `"ten"`, `"two"`, 1)).Redact(d.Nodes()[1].ID())
	v := d.Verify()
	require.Equal(t, "3 nodes: 1 finding\n"+v.Findings[0].String()+"\n"+d.Nodes()[1].String()+": redacted", v.String())
	j, err := json.Marshal(v)
	require.NoError(t, err)
	detail, err := json.Marshal(v.Findings[0].Detail)
	require.NoError(t, err)
	require.JSONEq(t, `{"ok":false,"nodes":3,"findings":[{"node":"`+id+`","kind":"digest mismatch","detail":`+string(detail)+
		`}],"waiting":[],"redacted":["`+d.Nodes()[1].ID().String()+`"],"unknown":[]}`, string(j))
	j, err = json.Marshal(dag.Verification{})
	require.NoError(t, err)
	require.JSONEq(t, `{"ok":true,"nodes":0,"findings":[],"waiting":[],"redacted":[],"unknown":[]}`, string(j))
}

func TestFindingNamesNodeAndKindOnce(t *testing.T) {
	d := read(t, strings.Replace(written(t, counting().User("ten").Assistant("x")), `"ten"`, `"two"`, 1))
	for _, f := range append(d.Verify().Findings, d.Validate()...) {
		require.Equal(t, dag.WrongDigest, f.Kind)
		require.Equal(t, 1, strings.Count(f.String(), "digest mismatch"), f.String())
		require.Equal(t, 1, strings.Count(f.String(), f.Node.String()), f.String())
		require.Regexp(t, `: digest mismatch: has sha256:[0-9a-f]{64}, recorded is sha256:[0-9a-f]{64}$`, f.String())
	}
}

func TestVerifyListsOpenCallsAtEveryHead(t *testing.T) {
	open := counting().User("q").Assistant("", use("a", "f", "{}"), use("b", "f", "{}"))
	other := counting().WithSource(node.Counting(start.AddDate(1, 0, 0))).User("other").Assistant("", use("c", "g", "{}"))
	half := open.AppendExecutions(execution(1, "x"))
	for name, c := range map[string]struct {
		d    dag.DAG
		want []string
	}{
		"none open":     {open.CloseTools(), nil},
		"all open":      {open, []string{`call 0, "a" of "f"`, `call 1, "b" of "f"`}},
		"half executed": {half, []string{`call 0, "a" of "f"`}},
		"joined":        {half.Join(other), []string{`call 0, "a" of "f"`, `call 0, "c" of "g"`}},
		"passed over":   {half.User("on"), nil},
	} {
		v := c.d.Verify()
		require.True(t, v.OK(), name)
		var got []string
		for _, f := range v.Waiting {
			require.Equal(t, dag.CallWaits, f.Kind)
			require.Contains(t, v.String(), f.String())
			got = append(got, f.Detail)
		}
		require.Equal(t, c.want, got, name)
	}
}

func TestVerifyNeedsNoRecursion(t *testing.T) {
	growthtest.SmallStack(t)
	size := seedtest.Rounds(20_000, 1_000_000)
	d := chainOf(size)
	d = d.Redact(d.Nodes()[0].ID(), d.Nodes()[size/2].ID())
	require.NoError(t, d.Err())
	v := d.Verify()
	require.True(t, v.OK())
	require.Equal(t, size, v.Nodes)
	require.Len(t, v.Redacted, 2)
}

func chainOf(size int) dag.DAG {
	d, p := counting(), node.Message{Role: content.User, Blocks: content.Words("x")}
	for range size {
		d = d.Append(p)
	}
	return d
}

// BenchmarkVerify compares with hashing the file's bytes at once, which is the least that anything can cost.
func BenchmarkVerify(b *testing.B) {
	for _, size := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			text := written(b, conversation(size))
			d := read(b, text)
			data := []byte(text)
			pair(b, len(text), func() {
				if v := d.Verify(); !v.OK() {
					b.Fatal(v)
				}
			}, func() { sum = sha256.Sum256(data) })
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(d.Len()), "ns/node")
		})
	}
}

var sum [sha256.Size]byte
