package viz

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/describe"
)

func TestEachSortOfNodeHasAShapeAndAStyle(t *testing.T) {
	for _, sort := range describe.Sorts() {
		require.NotEmpty(t, faces[sort].shape, sort)
		require.NotEmpty(t, faces[sort].style, sort)
	}
}
