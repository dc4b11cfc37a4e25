package dag_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/testkit/growthtest"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
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
	for name, d := range map[string]dag.DAG{"built": sample(t), "loaded": read(t, written(t, sample(t)))} {
		v := d.Verify()
		require.True(t, v.OK(), "%s: %v", name, v)
		require.Equal(t, len(lines(written(t, sample(t)))), v.Nodes, name)
		require.Equal(t, v.Nodes, v.Checked, name)
		require.Empty(t, v.Redacted)
		require.Empty(t, v.Unknown)
	}
	require.False(t, dag.New().Verify().OK(), "nothing was checked")
	require.Equal(t, "0 nodes: 0 checked, 0 redacted, 0 unknown, 0 findings; nothing was checked", dag.New().Verify().String())
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
		edited := strings.Replace(was, `"kind":`, `"kind" :`, 1)
		v := read(t, strings.Replace(text, was, edited, 1)).Verify()
		require.True(t, v.OK(), "a space is no change")

		edited = strings.Replace(was, `"time":"2`, `"time":"1`, 1)
		require.NotEqual(t, was, edited)
		v = read(t, strings.Replace(text, was, edited, 1)).Verify()
		require.Equal(t, len(all), v.Nodes)
		require.False(t, v.OK())
		require.Len(t, v.Findings, 1, "of node %d alone", i)
		require.Equal(t, strings.Split(was, `"`)[3], v.Findings[0].Node.ID().String())
		require.Equal(t, dag.FindingKind("wrong checksum"), v.Findings[0].Kind)
	}
}

func TestVerifyReportsAChangedResultOnce(t *testing.T) {
	d := counting().Assistant("", content.ToolUse{ID: "a", Name: "f"}, content.ToolUse{ID: "b", Name: "f"}).
		CloseTools(node.ToolExecution{Index: 0, Result: content.Words("ten")}, node.ToolExecution{Index: 1, Result: content.Words("eleven")}).User("Go on.")
	text := written(t, d)
	v := read(t, strings.Replace(text, `"ten"`, `"one"`, 1)).Verify()
	require.Equal(t, []string{"tool_execution: wrong checksum"}, found(v), "the message refers to it")
	v = read(t, strings.Replace(text, `"result_of":1`, `"result_of":0`, 1)).Verify()
	require.Equal(t, []string{"message: wrong checksum"}, found(v), "a reference to another execution")
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
	require.Equal(t, []string{"message: wrong checksum"}, found(v), "a block was added")
	require.Equal(t, v.Unknown, v.Unsummed)
	require.Equal(t, v.Nodes-2, v.Checked)
	require.Len(t, v.Unknown, 2, "also out of reach")
	require.Contains(t, v.String(), "planet 00000001: a kind that this version does not know")

	d = counting().User("SECRET").Assistant("x")
	d = d.Redact(d.Nodes()[0].ID())
	for _, d := range []dag.DAG{d, read(t, written(t, d))} {
		v = d.Verify()
		require.True(t, v.OK())
		require.Equal(t, []*node.Node{d.Nodes()[0]}, v.Redacted)
		require.Equal(t, 2, v.Checked, "a redacted node too")
	}
	forged := strings.Replace(written(t, counting().User("SECRET")), `,"sum"`, `,"redacted":true,"sum"`, 1)
	d = read(t, forged)
	v = d.Verify()
	require.Equal(t, []string{"message: marked as redacted but has content"}, found(v))
	require.Empty(t, v.Redacted)
	require.Equal(t, v.Findings, d.Validate())
	v = read(t, strings.Replace(forged, "SECRET", "other", 1)).Verify()
	require.Equal(t, []string{"message: wrong checksum", "message: marked as redacted but has content"}, found(v))
}

func TestVerificationAsTextAndAsJSON(t *testing.T) {
	d := counting().User("ten").Assistant("x").User("y")
	id := d.Nodes()[0].ID().String()
	d = read(t, strings.Replace(written(t, d), `"ten"`, `"two"`, 1)).Redact(d.Nodes()[1].ID())
	v := d.Verify()
	require.Equal(t, "3 nodes: 3 checked, 1 redacted, 0 unknown, 1 finding\n"+v.Findings[0].String()+"\n"+d.Nodes()[1].String()+": redacted", v.String())
	j, err := json.Marshal(v)
	require.NoError(t, err)
	require.JSONEq(t, `{"ok":false,"nodes":3,"checked":3,"findings":[{"node":"`+id+`","kind":"wrong checksum"}],"waiting":[],"redacted":["`+
		d.Nodes()[1].ID().String()+`"],"unknown":[],"unsummed":[]}`, string(j))
	j, err = json.Marshal(dag.Verification{})
	require.NoError(t, err)
	require.JSONEq(t, `{"ok":false,"nodes":0,"checked":0,"findings":[],"waiting":[],"redacted":[],"unknown":[],"unsummed":[]}`, string(j))
}

func TestFindingNamesNodeAndKindOnce(t *testing.T) {
	d := read(t, strings.Replace(written(t, counting().User("ten").Assistant("x")), `"ten"`, `"two"`, 1))
	for _, f := range append(d.Verify().Findings, d.Validate()...) {
		require.Equal(t, dag.FindingKind("wrong checksum"), f.Kind)
		require.Equal(t, 1, strings.Count(f.String(), "wrong checksum"), f.String())
		require.Equal(t, 1, strings.Count(f.String(), f.Node.String()), f.String())
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
			require.Equal(t, dag.FindingKind("call has no result yet"), f.Kind)
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
