package dag

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/describe"
)

func TestTheLogHasASignForEachSortOfNode(t *testing.T) {
	for _, sort := range describe.Sorts() {
		require.NotEmpty(t, nodeLooks[sort].glyph, sort)
	}
}
