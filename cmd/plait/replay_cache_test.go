package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/report/promptcache"
)

// cacheTally compares the predictions for recorded conversations with what the providers reported. The first calls do not count: what
// was in the cache before is not known.
type cacheTally struct {
	// neither predicted nor read; predicted and read; only one of them
	neither, both, onlyPredicted, onlyRead int
	// close is how many of both are at most 5 % apart.
	close int
}

func (c *cacheTally) add(d dag.DAG) {
	for _, call := range promptcache.Calls(d, &promptcache.Options{Cache: savedRequestOf(d).Cache}) {
		switch predicted, read := call.Predicted > 0, call.Read > 0; {
		case call.Break.Cause == "first":
		case predicted && read:
			c.both++
			if apart := call.Predicted - call.Read; max(apart, -apart)*20 <= call.Predicted {
				c.close++
			}
		case predicted:
			c.onlyPredicted++
		case read:
			c.onlyRead++
		default:
			c.neither++
		}
	}
}

// require holds that most predictions are right. Most recorded conversations are shorter than what is cached.
func (c *cacheTally) require(t *testing.T) {
	t.Logf("prompt cache: %d calls neither predicted nor read, %d both (%d within 5 %%), %d only predicted, %d only read",
		c.neither, c.both, c.close, c.onlyPredicted, c.onlyRead)
	wrong := c.onlyPredicted + c.onlyRead
	require.LessOrEqual(t, wrong*5, wrong+c.neither+c.both, "most predictions are right")
	require.LessOrEqual(t, c.onlyRead*10, wrong+c.neither+c.both, "what is read was predicted")
}
