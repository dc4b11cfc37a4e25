package report_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/report"
)

// labelsOf returns the labels of a comparison, line by line; "" for no step.
func labelsOf(c report.Comparison) (lines [][]string) {
	for _, line := range c.Lines {
		var labels []string
		for _, step := range line {
			if step == nil {
				labels = append(labels, "")
			} else {
				labels = append(labels, step.Label)
			}
		}
		lines = append(lines, labels)
	}
	return lines
}

func TestCompareBeginsAtTheCommonAncestorOfAll(t *testing.T) {
	asked := start().Append(answer(content.StopToolUse, "", "1"))
	failed := asked.CloseTools(executed(0, "no such city"))
	rows := []report.Row{
		report.Of("a", asked.CloseTools(executed(0, "")).Append(answer(content.StopEndTurn, "18 °C.")), nil),
		report.Of("b", failed.Append(answer(content.StopEndTurn, "Nowhere.")), nil),
		report.Of("c", failed.Append(answer(content.StopToolUse, "", "2")).CloseTools(executed(0, "")).Append(answer(content.StopEndTurn, "18 °C.")), nil),
	}

	c := report.Compare(rows)
	require.Equal(t, []string{"a", "b", "c"}, c.Names)
	require.Equal(t, 4, c.Same, "system, tools, user, assistant")
	require.Equal(t, "assistant", c.Last.Label)
	require.Equal(t, [][]string{
		{"get_weather", "", ""},
		{"", "get_weather: no such city", "get_weather: no such city"},
		{"assistant", "assistant", "assistant"},
		{"", "", "get_weather"},
		{"", "", "assistant"},
	}, labelsOf(c))
	require.False(t, c.Cut)
}

func TestCompareOfWhatSharesNothing(t *testing.T) {
	c := report.Compare([]report.Row{report.Of("a", dag.New().User("Hi."), nil), report.Of("b", dag.New().User("Hello."), nil)})
	require.Zero(t, c.Same)
	require.Nil(t, c.Last)
	require.Equal(t, [][]string{{"user", "user"}}, labelsOf(c), "one label, two texts")
	require.Zero(t, report.Compare([]report.Row{report.Of("a", start(), nil), report.Of("none", dag.New(), nil)}).Same)

	same := report.Of("a", answered(0, ""), nil)
	c = report.Compare([]report.Row{same, same})
	require.Equal(t, same.NumSteps, c.Same)
	data, err := json.Marshal(c)
	require.NoError(t, err)
	require.Contains(t, string(data), `"lines":[]`)

	require.Empty(t, report.Compare(nil).Names)
	require.True(t, report.Compare([]report.Row{report.Of("long", long("", 300), nil)}).Cut)
}
