package pair_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/bench/internal/pair"
)

// fixed is a variant with a given cost. Each run appends its name to ran.
func fixed(name string, ran *[]string, cost pair.Cost) pair.Variant {
	return pair.Variant{Name: name, Run: func(s *pair.Sample) error {
		*ran = append(*ran, name)
		s.Set(cost)
		return nil
	}}
}

// counted is a case of two such variants, so its figures are exact.
func counted(ran *[]string, goals ...pair.Goal) pair.Case {
	return pair.Case{Name: "case", Unit: "B", Goals: goals, Variants: func() ([]pair.Variant, error) {
		return []pair.Variant{
			fixed("ours", ran, pair.Cost{Value: 30, Allocs: 4, Bytes: 100}),
			fixed("theirs", ran, pair.Cost{Value: 10}),
		}, nil
	}}
}

func TestEachGoalLimitsItsOwnFigure(t *testing.T) {
	for kind, want := range map[pair.Kind]float64{pair.AtMost: 3, pair.Value: 30, pair.More: 20, pair.Allocs: 4, pair.Bytes: 100} {
		var ran []string
		for limit, met := range map[float64]bool{want: true, want - 1: false} {
			measures, err := pair.Runner{Rounds: 3}.Run(counted(&ran, pair.Goal{Kind: kind, Limit: limit}))
			require.NoError(t, err)
			require.Equal(t, want, measures[0].Ratio, kind)
			require.Equal(t, met, measures[0].Met, kind)
		}
	}
}

func TestFiguresInBytesAndAllocationsAreCounted(t *testing.T) {
	for _, test := range []struct {
		unit string
		kind pair.Kind
		want bool
	}{{"B", pair.AtMost, true}, {"", pair.Allocs, true}, {"", pair.Bytes, true}, {"", pair.AtMost, false}, {"", pair.Faster, false}} {
		var ran []string
		c := counted(&ran, pair.Goal{Kind: test.kind})
		c.Unit = test.unit
		measures, err := pair.Runner{Rounds: 1}.Run(c)
		require.NoError(t, err)
		require.Equal(t, test.want, measures[0].Counted, "%+v", test)
	}
}

func TestFasterIsMetAtOrAboveItsLimit(t *testing.T) {
	var ran []string
	for limit, met := range map[float64]bool{3: true, 3.1: false} {
		faster := pair.Goal{Kind: pair.Faster, Ours: "theirs", Beside: "ours", Limit: limit}
		measures, err := pair.Runner{Rounds: 3}.Run(counted(&ran, faster))
		require.NoError(t, err)
		require.Equal(t, 3.0, measures[0].Ratio)
		require.Equal(t, met, measures[0].Met)
	}
}

func TestEveryRoundMeasuresEveryVariantInAnOrderOfTheSeed(t *testing.T) {
	orders := func(seed uint64) []string {
		var ran []string
		_, err := pair.Runner{Rounds: 20, Seed: seed}.Run(counted(&ran))
		require.NoError(t, err)
		return ran[2:] // without the warm-up
	}

	first := orders(1)
	require.Len(t, first, 40)
	swapped := 0
	for i := 0; i < len(first); i += 2 {
		require.NotEqual(t, first[i], first[i+1])
		if first[i] == "theirs" {
			swapped++
		}
	}
	require.NotZero(t, swapped)
	require.Less(t, swapped, 20)
	require.Equal(t, first, orders(1))
	require.NotEqual(t, first, orders(2))
}

func TestRatioIsTheMedianOfPairedRounds(t *testing.T) {
	// A slow round slows both variants: their ratio is the same.
	round := 0
	busy := []float64{1, 1, 50, 1, 1, 1}
	measures, err := pair.Runner{Rounds: 5}.Run(pair.Case{Name: "case", Unit: "B", Variants: func() ([]pair.Variant, error) {
		at := func(factor float64) func(*pair.Sample) error {
			return func(s *pair.Sample) error {
				s.Set(pair.Cost{Value: factor * busy[round/2%len(busy)]})
				round++
				return nil
			}
		}
		return []pair.Variant{{Name: "ours", Run: at(2)}, {Name: "theirs", Run: at(1)}}, nil
	}, Goals: []pair.Goal{{Kind: pair.AtMost}}})
	require.NoError(t, err)
	require.Equal(t, 2.0, measures[0].Ratio)
	require.Equal(t, [2]float64{2, 2}, measures[0].Quartiles)
}

func TestPausedWorkIsNotMeasured(t *testing.T) {
	measures, err := pair.Runner{Rounds: 3, MinTime: time.Millisecond}.Run(pair.Case{Name: "case", Variants: func() ([]pair.Variant, error) {
		return []pair.Variant{{Name: "ours", Max: 1, Run: func(s *pair.Sample) error {
			s.Pause()
			kept = make([]byte, 1<<20)
			s.Resume()
			return nil
		}}}, nil
	}, Goals: []pair.Goal{{Kind: pair.Bytes, Limit: 1 << 19}}})
	require.NoError(t, err)
	require.True(t, measures[0].Met, "%v B", measures[0].Ratio)
}

var kept []byte

func TestErrorNamesCaseAndVariant(t *testing.T) {
	wrong := errors.New("wrong")
	closed := false
	_, err := pair.Runner{Rounds: 3}.Run(pair.Case{Name: "case", Variants: func() ([]pair.Variant, error) {
		return []pair.Variant{{Name: "ours", Run: func(*pair.Sample) error { return wrong }, Close: func() error { closed = true; return nil }}}, nil
	}})
	require.ErrorIs(t, err, wrong)
	require.ErrorContains(t, err, "case: ours")
	require.True(t, closed, "what was built is closed all the same")
}

func TestGoalOfAnUnknownVariantIsAnError(t *testing.T) {
	var ran []string
	_, err := pair.Runner{Rounds: 1}.Run(counted(&ran, pair.Goal{Kind: pair.AtMost, Beside: "nobody"}))
	require.ErrorContains(t, err, `"nobody"`)
}
