package api_test

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
)

type trip struct {
	Title string             `json:"title"`
	Days  int                `json:"days"`
	Fits  bool               `json:"fits,omitempty"`
	Stops []stop             `json:"stops"`
	Costs map[string]float64 `json:"costs,omitempty"`
	Start *time.Time         `json:"start,omitempty"`
}

type stop struct {
	City  string   `json:"city"`
	Notes []string `json:"notes"`
}

const tripJSON = `{"title":"Up \"north\" \\\\ \ud83d\ude00 \u00e9 ünï 日本 😀\n","days" : -12, "fits":true ,
	"stops":[{"city":"Oslo","notes":["a}]{","","c\\"]},{"city":"Bergen \\ud83d","notes":[ ]}],"costs":{"train,":-1.5e0,"bus":2}}`

func TestPartialKnowsAValueAtEachByte(t *testing.T) {
	want, err := api.Decode[trip](tripJSON)
	require.NoError(t, err)
	for n := 1; n <= len(tripJSON); n++ {
		var part api.Partial[trip]
		got, ok := part.Add(tripJSON[:n])
		require.True(t, ok, tripJSON[:n])
		require.True(t, strings.HasPrefix(want.Title, got.Title), "%q", got.Title)
		require.Contains(t, []int{0, want.Days}, got.Days, "a number that has not ended is not known")
		require.LessOrEqual(t, len(got.Stops), 2)
		for i, s := range got.Stops {
			require.True(t, strings.HasPrefix(want.Stops[i].City, s.City), "%q", s.City)
		}
	}

	// In pieces, with other text around it, the last value is the whole one.
	random := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		var part api.Partial[trip]
		var last trip
		rest := "Here it is:\n```json\n" + tripJSON + "\n```\nDone {."
		for rest != "" {
			n := min(1+random.IntN(40), len(rest))
			if got, ok := part.Add(rest[:n]); ok {
				last = got
			}
			rest = rest[n:]
		}
		require.Equal(t, want, last)
	}
}

func TestPartialOfAWrappedValue(t *testing.T) {
	var part api.Partial[[]string]
	var got [][]string
	for _, piece := range []string{`{"ans`, `wer":`, `["a`, `b","c"`, `]}`} {
		if value, ok := part.Add(piece); ok {
			got = append(got, value)
		}
	}
	require.Equal(t, [][]string{{"a"}, {"ab", "c"}, {"ab", "c"}}, got)
}

func TestPartialSkipsWhatTheTypeCannotHold(t *testing.T) {
	var part api.Partial[trip]
	start := 0
	for _, c := range `{"title":"x","start":"2026-11-28T00:00:00Z","days":"two"}` {
		if got, ok := part.Add(string(c)); ok && got.Start != nil {
			start++
		}
	}
	require.Positive(t, start)
}

// TestPartialOfHostileTextIsBounded reads texts that a model could write, one byte at a time.
func TestPartialOfHostileTextIsBounded(t *testing.T) {
	const size = 1 << 20
	whole, err := json.Marshal(trip{Title: strings.Repeat("long ", size/5-100)})
	require.NoError(t, err)
	for name, text := range map[string]string{
		"long":           string(whole),
		"many stops":     `{"stops":[` + strings.Repeat(`{"city":"Oslo"},`, size/16),
		"nested":         strings.Repeat(`{"stops":[`, size/10),
		"closed":         `{"title":"x"` + strings.Repeat("}]", size/2),
		"mismatched":     `{"title":["x"}` + strings.Repeat("]", 1000),
		"not UTF-8":      `{"title":"` + strings.Repeat("\xff\xf0\x9f", size/3),
		"escapes":        `{"title":"` + strings.Repeat(`\ud83d`, size/6),
		"broken escapes": `{"title":"\u12"` + strings.Repeat(`\`, 1000),
		"no object":      strings.Repeat("x", size),
		"beyond":         `{"title":"` + strings.Repeat("x", 2*size),
		"commas":         `{` + strings.Repeat(`,:"`, size/3),
	} {
		t.Run(name, func(t *testing.T) {
			var part api.Partial[trip]
			made := 0
			for i := range len(text) {
				if _, ok := part.Add(text[i : i+1]); ok {
					made++
				}
			}
			require.LessOrEqual(t, made, 400, "each needs a sixteenth more")
		})
	}
}
