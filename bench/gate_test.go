package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/bench/internal/pair"
)

func TestGateRefusesTooLittleOfWhatWasReached(t *testing.T) {
	reached := map[string]float64{"slower": 2, "faster": 9, "ns": 100, "allocs": 2}
	slower := func(ratio float64) pair.Measure { return pair.Measure{Name: "slower", Ratio: ratio, Comparable: true} }
	faster := func(ratio float64) pair.Measure {
		return pair.Measure{Name: "faster", Ratio: ratio, Comparable: true, Higher: true}
	}

	allocs := func(count float64) pair.Measure {
		return pair.Measure{Name: "allocs", Ratio: count, Comparable: true, Counted: true}
	}

	require.Empty(t, below([]pair.Measure{slower(6), faster(3.1), allocs(2.6)}, reached))
	require.Len(t, below([]pair.Measure{slower(6.1), faster(2.9), allocs(2.7)}, reached), 3)
	require.Empty(t, below([]pair.Measure{{Name: "ns", Ratio: 1000}}, reached), "nanoseconds are those of a machine")
	require.Empty(t, below([]pair.Measure{{Name: "new", Ratio: 9, Comparable: true}}, reached))
}

func TestGateMeasuresAgainBeforeItFails(t *testing.T) {
	defer func(before []byte) { reachedFile = before }(reachedFile)
	reachedFile = []byte(`{"case": 1}`)

	// attempts runs the gate on a case with these ratios, one for each attempt. It returns the number of attempts made.
	// An attempt takes its ratio once, in Variants: all its samples have the same figure.
	attempts := func(ratios ...float64) (int, error) {
		taken := 0
		c := pair.Case{Name: "case", Unit: "B", Goals: []pair.Goal{{Kind: pair.AtMost}}, Variants: func() ([]pair.Variant, error) {
			ratio := ratios[taken]
			taken++
			set := func(v float64) func(*pair.Sample) error {
				return func(s *pair.Sample) error { s.Set(pair.Cost{Value: v}); return nil }
			}
			return []pair.Variant{{Name: "ours", Run: set(ratio)}, {Name: "theirs", Run: set(1)}}, nil
		}}
		r := pair.Runner{Rounds: 1}
		first, err := r.Run(c)
		require.NoError(t, err)
		_, err = again(r, c, first)
		return taken, err
	}

	taken, err := attempts(1)
	require.NoError(t, err)
	require.Equal(t, 1, taken)

	taken, err = attempts(4, 1)
	require.NoError(t, err)
	require.Equal(t, 2, taken)

	taken, err = attempts(4, 4, 4)
	require.ErrorContains(t, err, "case is 4.00 after 1.00")
	require.Equal(t, 3, taken)
}
