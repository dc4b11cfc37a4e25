package dag_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/testkit/goldentest"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

// hostile is text that drives a terminal, turns the writing direction round, or breaks rows and columns.
const hostile = "\x1b[31mred\x1b[0m \x1b]0;title\x07 \u202eesrever\u202c \u2066isolate\u2069 a\r\nb\tc\vd\x00e\x7ff\u009b31m \xff\xfe " +
	"zero\u200bwidth \ufeffmark soft\u00adhyphen \u2028line \U000E0041tag \u3000wide"

// logs is the conversations whose drawing is pinned.
func logs(t *testing.T) map[string]dag.DAG {
	weather := toldWeather()
	base := fresh().System("Answer briefly.").User("Name a city.")
	fork := base.Assistant("Tokyo.").User("Another one?").Assistant("Paris.")
	other := base.Assistant("Lima.")
	src := node.Counting(time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC))
	helper := dag.New().WithSource(src).System("You look things up.").User("How high is the Fuji?").
		Assistant("", use("h1", "search", `{"query":"height of Fuji","max":3}`)).CloseTools(execution(0, "3,776 m")).Assistant("3,776 m.")
	helped := execution(1, "3,776 m.")
	helped.Child = node.ListOf(helper.Heads()...)
	helped.Started = time.Unix(0, 0)
	helped.Ended = helped.Started.Add(2340 * time.Millisecond)
	nested := fresh().User("Compare Fuji and Zugspitze.").
		Assistant("", use("a", "search", `{"query":"Zugspitze"}`), use("b", "research", `{"question":"How high is the Fuji?"}`)).
		CloseTools(execution(0, "2,962 m"), helped).
		Assistant("One more look.", use("c", "search", `{}`)).CloseTools(execution(1, "nothing new")).
		Assistant("The Fuji is higher.").Stop(content.StopEndTurn)
	var calls []content.Block
	for i := range 10 {
		calls = append(calls, use(fmt.Sprint(i), "fetch", content.JSON(fmt.Sprintf(`{"page":%d}`, i))))
	}
	half := askWeather()
	half, _, err := half.AppendTo(half.Heads(), execution(0, "22 °C"))
	require.NoError(t, err)
	half, _, err = half.AppendTo(half.Nodes()[3:4], execution(1, "18 °C"))
	require.NoError(t, err)
	everything := fresh().
		User("look", content.Image{Source: content.Source{URL: "https://example.com/a.png", MediaType: "image/png"}},
			content.Document{Source: content.Source{Text: "x"}, Title: "report.txt"}).
		Append(node.Message{Role: content.Assistant, Blocks: mustOf(t, content.Thinking{Text: "What is it?"}),
			Answer: node.Answer{Model: "model-a", Stop: content.StopMaxTokens}}).
		ToolResults(result("x", "by hand"), content.ToolResult{CallID: "y", Content: content.Words("broken"), IsError: true}).
		Append(node.Message{Role: content.Assistant, Blocks: mustOf(t, content.Opaque{API: "anthropic", JSON: "{}"}, content.Unknown{JSON: `{"type":"x"}`}),
			Answer: node.Answer{Model: "model-b"}}).
		Assistant("", use("z", "f", `{"cut":"o`), use("w", "g", "")).
		SubGraph("researcher", helper).
		Custom("acme.note", map[string]any{"a": 1}).
		Append(node.Compaction{Summary: content.Words("They looked at pictures."), Replaced: node.ListOf(node.ID{1}, node.ID{2})}).
		Append(node.StopReason{Reason: content.StopError, Detail: "529 overloaded", Elapsed: 90 * time.Second})
	return map[string]dag.DAG{
		"01 empty":             dag.New(),
		"02 weather":           weather,
		"03 two heads":         weather.Join(weather.Back(1).User("In Fahrenheit?").Assistant("71.6 °F")),
		"04 merge":             fork.Join(other).User("Which of them is the biggest?").Assistant("Tokyo."),
		"05 sub-agent":         nested,
		"06 wide fan":          fresh().User("Fetch all.").Assistant("", calls...).CloseTools().Assistant("Done."),
		"07 open calls":        askWeather(),
		"08 half a phase":      half,
		"09 every kind":        everything,
		"10 failed chain":      base.User("").Assistant("never said"),
		"11 two conversations": dag.New().WithSource(src).User("one").Assistant("1").Join(dag.New().WithSource(src).User("two")),
		"12 their merge":       dag.New().WithSource(src).User("one").Assistant("1").Join(dag.New().WithSource(src).User("two")).User("both"),
		"13 hostile text": fresh().System(hostile).User(hostile).Assistant(hostile, use("a", hostile, content.JSON(hostile))).
			CloseTools(execution(1, hostile)).Custom(hostile, hostile),
		"14 wide and combined": fresh().User(strings.Repeat("漢字かな", 20)).Assistant("e" + strings.Repeat("\u0301", 40) + " ok").
			User(strings.Repeat("👨‍👩‍👧‍👦 ", 30)).Assistant("🇯🇵🇫🇷 ❤️ 👍🏽 각 न्धा").User("\u0301lone mark \u200d joiner"),
		"15 started calls":  askWeather().AppendExecutions(execution(0, "22 °C"), started(1), started(2)),
		"16 calls in doubt": askWeather().AppendExecutions(started(1), started(2)).CloseTools(execution(0, "22 °C")),
	}
}

func TestLog(t *testing.T) {
	all := logs(t)
	var got strings.Builder
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range all {
			if !yield(name) {
				return
			}
		}
	}) {
		fmt.Fprintf(&got, "-- %s --\n%s\n", name, all[name])
		require.Equal(t, all[name].String(), all[name].String(), "it draws the same every time")
	}
	goldentest.Require(t, "log.golden", got.String())
	requireHarmless(t, got.String())
}

// requireNoControls fails when text holds what a terminal acts on.
func requireNoControls(t *testing.T, text string) {
	t.Helper()
	require.True(t, utf8.ValidString(text))
	for _, r := range text {
		if r == '\n' || r == '\u200d' || r == '\u200c' || r == '\ufe0f' {
			continue
		}
		require.False(t, unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.In(r, unicode.Zl, unicode.Zp), "%U", r)
	}
}

// isolated is a text that reads from right to left, as a row has it.
var isolated = regexp.MustCompile("\u2068([^\u2068\u2069\n]*)\u2069")

// requireHarmless fails as requireNoControls does, and when a row is too wide.
func requireHarmless(t *testing.T, log string) {
	t.Helper()
	log = isolated.ReplaceAllString(log, "$1")
	requireNoControls(t, log)
	for row := range strings.Lines(log) {
		// Without a table of widths: no more than 100 characters that take room, none of them counted twice.
		spacing := 0
		for _, r := range strings.TrimSuffix(row, "\n") {
			if !unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
				spacing++
			}
		}
		require.LessOrEqual(t, spacing, 100, row)
		require.Equal(t, strings.TrimRight(row, " \n"), strings.TrimSuffix(row, "\n"), "no space at the end")
	}
}

// TestLogKeepsItsRowsWhateverTheirDirection: a terminal that orders letters by their direction orders those of a text
// alone, and not the tool, the arrow and the result. Other rows have no signs for it.
func TestLogKeepsItsRowsWhateverTheirDirection(t *testing.T) {
	d := fresh().User("שלום, 12.").Assistant("", use("1", "search", `{"q":"خطأ 5"}`), use("2", "list", "{}")).
		CloseTools(execution(0, "3 קבצים"), execution(1, "7 files"))
	require.Equal(t, strings.Join([]string{
		"○ user      \u2068שלום, 12.\u2069",
		"● assistant → search, list",
		"├─╮",
		"▪ │ \u2068search(q: \"خطأ 5\")\u2069 → \u20683 קבצים\u2069",
		"│ ▪ list() → 7 files",
		"├─╯",
		"◇ results   2",
	}, "\n"), d.String())
}

func TestLogIsSafeToPrint(t *testing.T) {
	seed := seedtest.First(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	pools := [][]rune{
		[]rune("abc xyz{}[]\":,\\"), []rune("\x00\x1b\x07\x08\r\n\t\x7f\u0080\u009b\u009d"), []rune("\u202a\u202b\u202d\u202e\u2066\u2067\u200e\u200f\u061c"),
		[]rune("\u0301\u0489\u20dd\ufe0f\u200d\u200c"), []rune("漢가ｱ㋀👍👨🏽🇯🇵❤"), []rune("שלוםمرحبا"), []rune("\u2028\u2029\u00ad\ufeff\U000E0020\U000E007F\uFFFE"),
	}
	random := func() string {
		var b strings.Builder
		for range rnd.IntN(200) {
			pool := pools[rnd.IntN(len(pools))]
			b.WriteRune(pool[rnd.IntN(len(pool))])
			if rnd.IntN(40) == 0 {
				b.WriteByte(byte(0x80 + rnd.IntN(0x80)))
			}
		}
		return b.String() + "."
	}
	for range 400 {
		d := fresh().System(random()).User(random()).Assistant(random(), use(random(), random(), content.JSON(random())), use("", "f", "{}"))
		d = d.CloseTools(execution(1, random())).Custom(random(), random()).SubGraph(random(), d).Stop(content.Stop(random()))
		require.NoError(t, d.Err())
		requireHarmless(t, d.Join(d.Back(1).User(random())).String())
		for _, f := range d.Validate() {
			requireNoControls(t, f.String())
		}
	}
}

func TestDeeplyNestedSubAgentsAreCounted(t *testing.T) {
	d := dag.New().User("innermost")
	for range 50 {
		d = dag.New().User("go").SubGraph("agent", d).Assistant("done")
	}
	log := d.String()
	require.Contains(t, log, "⋯ ")
	require.Less(t, strings.Count(log, "\n"), 40)
	requireHarmless(t, log)
}

func TestSubAgentIsDrawnWithoutSharedNodes(t *testing.T) {
	d := fresh().User("one").Assistant("two")
	e := d.User("task").Assistant("solved")
	log := d.SubGraph("agent", e).SubGraph("agent again", e).String()
	require.Equal(t, 1, strings.Count(log, "two"), log)
	require.Equal(t, 1, strings.Count(log, "task"), log)
	require.Contains(t, log, "⋯ drawn above")
}

func TestManyBranchesAreDrawnInBoundedWidth(t *testing.T) {
	d := dag.New()
	for i := range 60 {
		d = d.Join(dag.New().User(fmt.Sprint("root ", i)))
	}
	log := d.User("all of them").Assistant("fine").String()
	requireHarmless(t, log)
	require.Contains(t, log, "root 59")
	require.Contains(t, log, "all of them")
}
