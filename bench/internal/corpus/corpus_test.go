package corpus_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/bench/internal/corpus"
)

func TestCorpusIsReproducibleAndValid(t *testing.T) {
	d := corpus.New(1).Conversation(1000)
	text, doc := corpus.Saved(d)
	again, _ := corpus.Saved(corpus.New(1).Conversation(1000))
	require.Equal(t, string(text), string(again))

	require.Empty(t, d.Validate())
	require.Len(t, doc.Nodes, d.Len())
	require.InDelta(t, 2e6, len(text), 6e5, "about 2 MB for 1,000 nodes")

	images := 0
	for _, n := range doc.Nodes {
		for _, b := range n.Body.Blocks {
			if b.Source != nil {
				images++
				require.Len(t, b.Source.Data, 200_000)
			}
		}
	}
	require.Equal(t, 1000/corpus.ImageEvery-1, images)
}

func TestTextsHaveTheLengthsOfTheCorpus(t *testing.T) {
	c := corpus.New(2)
	short, long := 0, 0
	for range 1000 {
		size := len(c.Text())
		require.Greater(t, size, 199)
		require.Less(t, size, 4040)
		if size < 894 { // the middle of the logarithmic scale
			short++
		} else {
			long++
		}
	}
	require.InDelta(t, short, long, 120)
}
