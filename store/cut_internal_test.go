package store

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/plait-dev/plait/dag"
	"github.com/stretchr/testify/require"
)

// TestCutLinesAreRestored cuts lines with every limit: nodes of random texts with quotes and backslashes.
func TestCutLinesAreRestored(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pieces := []string{`"`, `\`, `\"`, `\\`, "\n", "a", "é", `","`, "{", `":"`, "\u2028", "x x x x x x x x"}
	for range 60 {
		var text strings.Builder
		for range r.IntN(12) {
			text.WriteString(pieces[r.IntN(len(pieces))])
		}
		line := dag.New().WithMetadata("x", 1).Custom("x"+text.String(), []string{text.String(), ""}).Head().Append(nil)
		for limit := 1; limit < len(line)+2; limit++ {
			rest, cuts, blobs := cutLine(line, limit)
			record := Record{Line: rest, Cuts: cuts, Sum: SumOf(line)}
			held := map[Sum][]byte{}
			for _, b := range blobs {
				require.GreaterOrEqual(t, len(b.Data), limit)
				held[b.Sum] = b.Data
			}
			got, err := record.restored(held)
			require.NoError(t, err)
			require.Equal(t, string(line), string(got))

			again, none, _ := cutLine(rest, limit)
			require.Empty(t, none, "a literal of the limit is left")
			require.Equal(t, string(rest), string(again))
		}
	}
}

func FuzzCutLine(f *testing.F) {
	f.Add([]byte(`{"a":"long \" text","b":"\\"}`), 3)
	f.Add([]byte(`"""\`), 1)
	f.Fuzz(func(t *testing.T, line []byte, limit int) {
		rest, cuts, blobs := cutLine(line, max(limit, 1)) // not JSON: a driver may return anything
		held := map[Sum][]byte{}
		for _, b := range blobs {
			held[b.Sum] = b.Data
		}
		got, err := Record{Line: rest, Cuts: cuts, Sum: SumOf(line)}.restored(held)
		require.NoError(t, err)
		require.Equal(t, string(line), string(got))
	})
}
