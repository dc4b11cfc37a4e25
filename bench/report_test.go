package main

import (
	"bufio"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/bench/internal/pair"
)

func TestRowShowsFiguresWithTheirUnits(t *testing.T) {
	m := pair.Measure{
		Name: "load/1k", Number: 4, Ours: 12_345, Baseline: 4_000_000, Unit: "ns", Beside: "goccy", Ratio: 3.456, Quartiles: [2]float64{3, 14.25},
		Goal: "<= 1.25",
	}
	text := row(m)
	for _, part := range []string{"12.3 µs", "4.00 ms goccy", "3.46", "[3.00–14.2]", "≤ 1.25 MISSED"} {
		require.Contains(t, text, part)
	}
	require.Contains(t, fileRow(m), "4\tload/1k\t12.3 µs")
}

func TestTheWrittenTableHasEveryFigure(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("bench", 0o755))
	measures := []pair.Measure{
		{Name: "load/1k", Number: 4, Ours: 12_345, Unit: "ns", Per: "node", Ratio: 3.456, Goal: "<= 1.25"},
		{Name: "scale/a name longer than a terminal has room for", Ours: 7, Unit: "B", Per: "op", Met: true},
	}
	require.NoError(t, write(measures, "a machine"))

	written, err := os.ReadFile("bench/measured.txt")
	require.NoError(t, err)
	for _, part := range []string{
		"a machine", "load/1k", "12.3 µs per node", "≤ 1.25, missed\n\n", measures[1].Name, "7.00 B per op",
	} {
		require.Contains(t, string(written), part)
	}
	require.NotContains(t, string(written), " \n", "no line ends with spaces")
}

func TestOfTwoLinesWithOneNameTheLaterCounts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lines")
	lines := `{"name":"a","ratio":1}` + "\n" + `{"name":"b","ratio":2}` + "\n" + `{"name":"a","ratio":3}` + "\n"
	require.NoError(t, os.WriteFile(path, []byte(lines), 0o644))
	list, err := earlier(path)
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, 3.0, list[0].Ratio)
}

func TestALineThatIsTooLongIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lines")
	lines := `{"name":"a","ratio":1}` + "\n" + `{"name":"` + strings.Repeat("b", bufio.MaxScanTokenSize) + `"}` + "\n"
	require.NoError(t, os.WriteFile(path, []byte(lines), 0o644))
	_, err := earlier(path)
	require.ErrorIs(t, err, bufio.ErrTooLong)
}

func TestMeasuresOfOneAreaStandTogether(t *testing.T) {
	var measures []pair.Measure
	for _, name := range []string{"save/1k", "load/1k", "cold", "save/100k", "cold/x", "load/100k"} {
		measures = append(measures, pair.Measure{Name: name})
	}

	var names []string
	for _, m := range byArea(measures) {
		names = append(names, m.Name)
	}
	require.Equal(t, []string{"save/1k", "save/100k", "load/1k", "load/100k", "cold", "cold/x"}, names)
}

func TestChartHasALineForEachLibrary(t *testing.T) {
	var measures []pair.Measure
	for turns, cost := range map[string]float64{"10": 5_000, "100": 6_000, "1k": 1_000_000} {
		measures = append(measures,
			pair.Measure{Name: "peers/eino/turn/1 calls/" + turns, Ours: 4000, Baseline: 9000},
			pair.Measure{Name: "peers/adk/turn/1 calls/" + turns, Ours: 5000, Baseline: cost},
			pair.Measure{Name: "peers/anthropic/turn/1 calls/" + turns, Ours: 90_000, Baseline: cost},
			pair.Measure{Name: "peers/adk/turn/8 calls/" + turns, Ours: 1, Baseline: 1})
	}

	svg := chart(turnLines(measures))
	require.NoError(t, xml.Unmarshal([]byte(svg), new(struct{})))
	require.Equal(t, 3, strings.Count(svg, "<polyline"))
	for _, name := range []string{">Plait<", ">eino<", ">adk<"} {
		require.Contains(t, svg, name)
	}
	require.NotContains(t, svg, "anthropic")
	require.Nil(t, turnLines(nil))
}
