package node_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

func parsed(t *testing.T, line string, before ...*node.Node) *node.Node {
	t.Helper()
	n, err := node.Parse([]byte(line), reader(before...))
	require.NoError(t, err)
	return n
}

// TestSumFollowsTheDocumentedRule hashes the bytes of a line, as a reader in another language does.
func TestSumFollowsTheDocumentedRule(t *testing.T) {
	m := newMaker(t)
	for _, p := range payloads(t) {
		line := string(m.node(p).Append(nil))
		covered, sum, _ := strings.Cut(line, `,"sum":`)
		require.Equal(t, fmt.Sprintf(`"sha256:%x"}`, sha256.Sum256([]byte(covered))), sum)
	}
}

func TestVerifyFindsEveryChangedMember(t *testing.T) {
	m := newMaker(t)
	root := m.node(node.System{Text: "Be brief."})
	meta, err := node.Meta{}.With("reviewed", false)
	require.NoError(t, err)
	n, err := node.New(m.src, node.Message{Role: content.Assistant, Blocks: content.Words("10 euros"), Answer: node.Answer{Model: "small"}}, meta, root)
	require.NoError(t, err)
	line := string(n.Append(nil))
	require.NoError(t, n.Verify())
	require.NoError(t, parsed(t, line, root).Verify())

	unknown := strings.Replace(strings.Replace(line, `"kind":"message"`, `"kind":"moon"`, 1), `"time"`, `"phase":{"of":1,"\u0041":2},"time"`, 1)
	covered, _, _ := strings.Cut(unknown, `,"sum":`)
	unknown = fmt.Sprintf(`%s,"sum":"sha256:%x"}`, covered, sha256.Sum256([]byte(covered)))
	require.NoError(t, parsed(t, unknown, root).Verify())
	require.NoError(t, parsed(t, strings.ReplaceAll(unknown, `":`, `": `), root).Verify())

	for _, c := range []struct{ line, old, new string }{
		{line, "10 euros", "99 euros"}, {line, "small", "large"}, {line, "false", "true"}, {line, ":06Z", ":07Z"}, {line, ":06Z", ":06.0Z"},
		{line, `"sum":"sha256:`, `"redacted":true,"sum":"sha256:`}, {unknown, `{"of":1`, `{"of":2`}, {unknown, "moon", "sun"},
	} {
		edited := strings.Replace(c.line, c.old, c.new, 1)
		require.NotEqual(t, c.line, edited, c.old)
		got := parsed(t, edited, root)
		if strings.Contains(c.new, "redacted") {
			require.ErrorIs(t, got.Verify(), node.ErrRedaction)
			continue
		}
		require.Equal(t, c.new == ":06.0Z", got.Verify() == nil, "the same time in another form is no change: %s", c.new)
		if c.new != ":06.0Z" {
			require.ErrorIs(t, got.Verify(), node.ErrSum)
		}
		require.Equal(t, edited, string(got.Append(nil)), "a wrong checksum is kept")
	}

	bare := parsed(t, strings.Split(line, `,"sum"`)[0]+"}", root)
	require.ErrorIs(t, bare.Verify(), node.ErrNoSum)
	require.Equal(t, n.Digest(), bare.Digest())
}

// TestVerifyAcceptsOtherFormsOfALine writes lines anew, as programs do that read and write JSON.
func TestVerifyAcceptsOtherFormsOfALine(t *testing.T) {
	m := newMaker(t)
	n := m.node(node.Message{Role: content.User, Blocks: content.Words("<b>é & \"x\"</b>")})
	var members map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(n.Append(nil), &members))
	sorted, err := json.Marshal(members) // members by name, and < as \u003c
	require.NoError(t, err)
	require.NotContains(t, string(sorted), "<")
	for _, line := range []string{string(sorted), strings.ReplaceAll(string(n.Append(nil)), `":`, `": `)} {
		read := parsed(t, line)
		require.NoError(t, read.Verify(), line)
		again, err := json.Marshal(read)
		require.NoError(t, err)
		require.NoError(t, parsed(t, string(again)).Verify(), "%s", again)
		require.ErrorIs(t, parsed(t, strings.Replace(line, "x", "y", 1)).Verify(), node.ErrSum)
	}
}

// TestRedactedNodeHasTheSumOfWhatIsLeft erases a node in the middle: no other line changes, and no hash of the content is left.
func TestRedactedNodeHasTheSumOfWhatIsLeft(t *testing.T) {
	m := newMaker(t)
	root := m.node(node.System{Text: "Be brief."})
	pin := m.node(user("My PIN is 4711."), root)
	last := m.node(user("And?"), pin)
	read := []*node.Node{parsed(t, string(root.Append(nil)))}
	for _, n := range []*node.Node{pin, last} {
		read = append(read, parsed(t, string(n.Append(nil)), read...))
	}

	for _, nodes := range [][]*node.Node{{root, pin, last}, read} {
		old := string(nodes[1].Append(nil))
		redacted := redact(t, nodes, nodes[1])
		for i, n := range redacted {
			require.NoError(t, n.Verify())
			require.Equal(t, i != 1, string(nodes[i].Append(nil)) == string(n.Append(nil)))
		}
		line := string(redacted[1].Append(nil))
		require.NotContains(t, line, old[len(old)-20:])
		require.NoError(t, parsed(t, line, root).Verify())
		require.True(t, parsed(t, line, root).Redacted())
		require.NotEqual(t, pin.Digest(), redacted[1].Digest())
		require.NotEqual(t, last.Digest(), redacted[2].Digest())
		require.Equal(t, redacted[1].Digest(), parsed(t, line, root).Digest(), "it equals only itself")
	}
}
