package dag

import (
	"testing"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/memo"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

// TestSeenDigestsOnlyWhenNeeded: without thinking whose model's sight is known nothing is, and with it nothing after the last.
func TestSeenDigestsOnlyWhenNeeded(t *testing.T) {
	answer := func(d DAG, seen node.Digest) DAG {
		blocks, err := content.Of(content.Thinking{Text: "hm", Signature: "s"})
		require.NoError(t, err)
		return d.Append(node.Message{Role: content.Assistant, Blocks: blocks, Answer: node.Answer{Seen: seen}})
	}
	digested := func(d DAG) (places []int) {
		for i, m := range d.Transcript().Messages {
			if memo.OfBlocks(m.Blocks).Get(sumKey{}) != nil {
				places = append(places, i)
			}
		}
		return places
	}
	d := answer(New().User("1"), node.Digest{}).User("3").Assistant("4").User("5")
	require.Empty(t, digested(d))
	require.Equal(t, []int{0, 1, 2, 3, 4}, digested(answer(d, unseen).User("7").Assistant("8")))
}
