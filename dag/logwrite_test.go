package dag_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

func logOf(t testing.TB, d dag.DAG, o *dag.LogOptions) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, d.WriteLog(&b, o))
	return b.String()
}

var colorCode = regexp.MustCompile("\x1b\\[(?:0|3[1-6]|90)m")

func TestColorAddsNothingButCodes(t *testing.T) {
	for name, d := range logs(t) {
		for _, o := range []dag.LogOptions{{}, {Width: 40}, {Fold: true}, {Last: 3}} {
			plain := logOf(t, d, &o)
			o.Color = true
			colored := logOf(t, d, &o)
			require.Equal(t, plain, colorCode.ReplaceAllString(colored, ""), name)
			requireNoControls(t, plain)
			if d.Len() > 0 {
				require.NotEqual(t, plain, colored, name)
			}
		}
	}
}

func TestTextHasNoColorCodes(t *testing.T) {
	attack := "\x1b[2J\x1b]8;;https://example.com\x1b\\link\x1b]8;;\x1b\\ \u009b31m\u009d0;title\u009c\x07\x08\x7f end"
	d := fresh().System(attack).User(attack).Assistant(attack, use("a", attack, content.JSON(attack))).CloseTools(execution(0, attack)).
		Custom(attack, attack).Append(node.StopReason{Reason: content.Stop(attack), Detail: attack})
	for _, o := range []dag.LogOptions{{Color: true}, {Color: true, Width: 30, Fold: true}} {
		log := logOf(t, d, &o)
		require.Contains(t, log, "\x1b[")
		requireNoControls(t, colorCode.ReplaceAllString(log, ""))
	}
}

func TestLogKeepsItsWidth(t *testing.T) {
	for name, d := range logs(t) {
		for _, width := range []int{40, 60, 200} {
			for row := range strings.Lines(logOf(t, d, &dag.LogOptions{Width: width})) {
				row = strings.TrimSuffix(row, "\n")
				graph := len([]rune(row)) - len(strings.TrimLeft(row, "│├┤╮╯╰╭┬┴┼─⋮┊ "))
				require.LessOrEqual(t, safetext.Width(row), max(width, graph+width/4), "%s, width %d: %s", name, width, row)
			}
		}
	}
	wide := logOf(t, fresh().User(strings.Repeat("x", 500)), &dag.LogOptions{Width: 60})
	require.Equal(t, 60, safetext.Width(strings.TrimSuffix(wide, "\n")))

	cut := logOf(t, fresh().User(strings.Repeat("x", 2046)+"\U0001F600"), &dag.LogOptions{Width: 3000})
	require.Equal(t, 1, strings.Count(cut, "\uFFFD"), "a character that is cut in two is one sign")
	require.Equal(t, logOf(t, toldWeather(), nil), logOf(t, toldWeather(), &dag.LogOptions{Width: -1, Last: -1}))
}

func TestRefsAndHeadsAreMarked(t *testing.T) {
	d := fresh().User("one").WithRef("start").Assistant("two").WithRef("main").WithRef("release")
	require.Equal(t, "○ user      (start) one\n● assistant (head, main, release) two\n", logOf(t, d, nil))
	require.NotContains(t, d.String(), "main")

	forked := d.Join(d.Back(1).Assistant("other"))
	log := logOf(t, forked, nil)
	require.Contains(t, log, "(head 1, main, release) two")
	require.Contains(t, log, "(head 2) other")
	long := logOf(t, fresh().User("one").WithRef(strings.Repeat("very-long-name-", 12)), nil)
	require.Contains(t, long, "(head, very-long-na")
	require.Contains(t, long, "…) one")
}

func TestLongNamesOfRefsAreCut(t *testing.T) {
	name := func(letter string) string { return strings.Repeat(letter, 40) }
	d := fresh().User("one").WithRef(name("a")).WithRef(name("b")).User("two").WithRef(name("c")).User("end")
	cut := func(letter string, letters int) string { return strings.Repeat(letter, letters) + "…" }
	require.Equal(t, fmt.Sprintf(`○ user      (%s, %s) one
○ user      (%s) two
○ user      (head) end
`, cut("a", 29), cut("b", 29), cut("c", 29)), logOf(t, d, &dag.LogOptions{Width: 200}), "each for itself")
	require.Equal(t, fmt.Sprintf(`○ user      (%s,…) one
○ user      (%s) two
○ user      (head) end
`, cut("a", 29), cut("c", 29)), logOf(t, d, nil), "together, at a third of the width")
	require.Equal(t, fmt.Sprintf(`○ user      (%s) one
○ user      (%s) two
○ user      (head) end
`, cut("a", 12), cut("c", 12)), logOf(t, d, &dag.LogOptions{Width: 40}))
}

func TestMergeOfThreeBranchesIsDrawn(t *testing.T) {
	root := fresh().User("root")
	left, middle, right := root.User("left"), root.User("middle"), root.User("right")
	d := left.Join(middle, right).User("all").Join(left.User("more"))
	require.NoError(t, d.Err())
	require.Equal(t, `○ user      root
├─╮
│ ○ user      left
├─│─╮
│ │ ○ user      middle
○ │ │ user      right
├─┼─╯
○ │ user      (head 1) all
  ○ user      (head 2) more
`, logOf(t, d, nil))
}

func TestFoldedRunKeepsItsColumn(t *testing.T) {
	calls := []content.Block{use("a", "f", `{}`), use("b", "g", `{}`)}
	phase := func(d dag.DAG) dag.DAG {
		return d.Assistant("", calls...).CloseTools(execution(0, "1"), execution(1, "2"))
	}
	d := fresh().User("1").User("2").User("3").User("4")
	for i := range 6 {
		d = phase(d).Assistant("so").User(fmt.Sprint("question ", i))
	}
	require.Equal(t, `○ user      1
○ user      2
○ user      3
○ user      4
● assistant → f, g
⋮ 28 nodes: 4 user turns, 9 answers, 10 tool calls
○ user      question 4
● assistant → f, g
├─╮
▪ │ f() → 1
│ ▪ g() → 2
├─╯
◇ results   2
● assistant so
○ user      (head) question 5
`, logOf(t, d, &dag.LogOptions{Fold: true}), "from a call")
	d = fresh().User("1")
	for i := range 6 {
		d = phase(d.Assistant("so").User(fmt.Sprint("question ", i)))
	}
	d = d.Assistant("1").User("2").Assistant("3").User("end")
	require.Equal(t, `○ user      1
● assistant so
○ user      question 0
● assistant → f, g
├─╮
▪ │ f() → 1
│ ▪ g() → 2
├─╯
◇ results   2
⋮ 27 nodes: 5 user turns, 10 answers, 8 tool calls
├─╮
▪ │ f() → 1
│ ▪ g() → 2
├─╯
◇ results   2
● assistant 1
○ user      2
● assistant 3
○ user      (head) end
`, logOf(t, d, &dag.LogOptions{Fold: true}), "to a call")

	d = fresh()
	for i := range 20 {
		d = d.User(fmt.Sprint("question ", i))
	}
	var many []content.Block
	var runs []node.ToolExecution
	for i := range 12 {
		many, runs = append(many, use(fmt.Sprint(i), "f", `{}`)), append(runs, execution(i, "1"))
	}
	d = d.Assistant("", many...).CloseTools(runs...).Assistant("1").User("2").Assistant("3").User("end")
	require.Contains(t, logOf(t, d, &dag.LogOptions{Fold: true}), "⋮ 16 nodes: 15 user turns, 1 answer\n├─▪ f() → 1\n├─▪ f() → 1\n├─▪ f() → 1\n├─⋯ 9 more calls\n◇ results   12", "to a wide fan")
}

// A conversation that a sub-agent shares with what is left out stands nowhere above.
func TestChildrenAmongNodesBeforeAreNotDrawn(t *testing.T) {
	d := fresh().User("one").Assistant("two")
	d = d.SubGraph("again", d)
	require.Equal(t, "⋮ 2 nodes before\n▣ sub-graph (head) again → two\n┊ ⋯ among the nodes before\n", logOf(t, d, &dag.LogOptions{Last: 1}))
	require.Contains(t, logOf(t, d, nil), "⋯ drawn above")
}

func TestLastDrawsTheEndAndCountsTheRest(t *testing.T) {
	d := fresh()
	for i := range 1500 {
		d = d.User(fmt.Sprint("message ", i))
	}
	require.Equal(t, "⋮ 1,498 nodes before\n○ user      message 1498\n○ user      (head) message 1499\n", logOf(t, d, &dag.LogOptions{Last: 2}))
	require.Equal(t, logOf(t, d, nil), logOf(t, d, &dag.LogOptions{Last: 1500}))
	for name, d := range logs(t) {
		for last := 1; last < 8; last++ {
			require.NotEmpty(t, logOf(t, d, &dag.LogOptions{Last: last}), name)
		}
	}
}

func TestFoldDrawsLongRunsAndWideFansAsOneRow(t *testing.T) {
	d := fresh()
	for i := range 100 {
		d = d.User(fmt.Sprint("question ", i)).Assistant("", use("a", "f", `{}`), use("b", "g", `{}`)).CloseTools(execution(0, "1"), execution(1, "2")).Assistant("so")
	}
	log := logOf(t, d, &dag.LogOptions{Fold: true})
	require.Contains(t, log, "⋮ 586 nodes: 97 user turns, 195 answers, 196 tool calls\n")
	require.Contains(t, log, "question 0")
	require.Contains(t, log, "question 99")
	require.NotContains(t, log, "question 50")
	require.Less(t, strings.Count(log, "\n"), 22)

	short := fresh()
	for i := range 20 {
		short = short.User(fmt.Sprint("message ", i))
	}
	branched := short.Assistant("left").Join(short.Assistant("right"))
	require.Contains(t, logOf(t, branched, &dag.LogOptions{Fold: true}), `○ user      message 4
⋮ 11 nodes: 11 user turns
○ user      message 16
○ user      message 17
○ user      message 18
○ user      message 19
├─╮
`)

	broken := execution(0, "broken")
	broken.IsError = true
	half := fresh()
	for i := range 40 {
		half = half.User(fmt.Sprint("question ", i)).Assistant("so")
		if i == 20 {
			half = half.Assistant("", use("a", "f", `{}`)).CloseTools(broken)
		}
		if i == 30 {
			half = half.WithRef("here")
		}
	}
	log = logOf(t, half, &dag.LogOptions{Fold: true})
	require.Contains(t, log, "✗ broken")
	require.Contains(t, log, "(here)")
	require.Equal(t, 3, strings.Count(log, "⋮"))

	var calls []content.Block
	var runs []node.ToolExecution
	for i := range 30 {
		calls = append(calls, use(fmt.Sprint(i), "fetch", `{}`))
		e := execution(i, fmt.Sprint("page ", i))
		e.IsError = i == 17
		runs = append(runs, e)
	}
	log = logOf(t, fresh().User("go").Assistant("", calls...).CloseTools(runs...).Assistant("done"), &dag.LogOptions{Fold: true})
	require.Contains(t, log, "├─⋯ 26 more calls\n")
	require.Contains(t, log, "page 2")
	require.NotContains(t, log, "page 3")
	require.Contains(t, log, "✗ page 17")
}

// TestFoldedLogsCountEveryNode draws random graphs folded: every node has a row, or is counted in one.
func TestFoldedLogsCountEveryNode(t *testing.T) {
	counted := regexp.MustCompile(`(?m)(?:⋮|⋯) (\d+) (?:nodes|more call)`)
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 7))
		d := fresh().User("root")
		for range r.IntN(60) {
			all := d.Nodes()
			parents := []*node.Node{d.Heads()[r.IntN(len(d.Heads()))]}
			if r.IntN(12) == 0 {
				parents[0] = all[r.IntN(len(all))]
			}
			if r.IntN(12) == 0 {
				parents = append(parents, all[r.IntN(len(all))])
			}
			var err error
			d, _, err = d.AppendTo(parents, node.Message{Role: content.User, Blocks: content.Words("word")})
			require.NoError(t, err)
		}
		log := logOf(t, d, &dag.LogOptions{Fold: true})
		if strings.Contains(log, "left out") {
			require.LessOrEqual(t, strings.Count(log, "\n"), 60)
			continue // a row counts other rows, not nodes
		}
		total := strings.Count(log, "word") + strings.Count(log, "root")
		for _, m := range counted.FindAllStringSubmatch(log, -1) {
			var n int
			fmt.Sscan(m[1], &n)
			total += n
		}
		require.Equal(t, d.Len(), total, "seed %d\n%s", seed, log)
		require.NotContains(t, log, "-1")
	}
}

func TestLogEndsInTheErrorOfTheChainOrTheWriter(t *testing.T) {
	failed := fresh().User("")
	require.Contains(t, logOf(t, failed, nil), "✗ ")
	r, w := io.Pipe()
	require.NoError(t, r.CloseWithError(io.ErrShortWrite))
	require.ErrorIs(t, toldWeather().WriteLog(w, nil), io.ErrShortWrite)
}

func BenchmarkLog(b *testing.B) {
	for _, size := range []int{100, 2000, 20_000} {
		d := dag.New().WithSource(node.Counting(time.Unix(0, 0)))
		for i := 0; i < size; i += 5 {
			d = d.User("Weather?").Assistant("", use("a", "get_weather", `{"city":"Tokyo"}`), use("b", "get_weather", `{"city":"Paris"}`)).
				CloseTools(execution(0, "22 °C"), execution(1, "18 °C"))
		}
		for name, o := range map[string]*dag.LogOptions{"": nil, ", folded": {Fold: true}} {
			b.Run(fmt.Sprintf("%d nodes%s", size, name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if err := d.WriteLog(io.Discard, o); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*d.Len()), "ns/node")
			})
		}
	}
}

// TestReasonOfAFailureRemainsInANarrowLog has a call whose tool and arguments alone are wider than the row.
func TestReasonOfAFailureRemainsInANarrowLog(t *testing.T) {
	tool := "mcp__" + strings.Repeat("very_long_server_", 4) + "read"
	failed := execution(0, "")
	failed.Tool, failed.Input, failed.IsError = tool, content.JSON(`{"path":"`+strings.Repeat("deep/", 40)+`"}`), true
	for text, want := range map[string]string{
		"no such file": "✗ no such file (path",
		"Traceback (most recent call last):\n  File \"x.py\", line 1\nValueError: no such file\n": "✗ ValueError: no such file …",
		"exit status 1\nFAIL\tpkg": "✗ exit status 1 … (path",
		"":                         "✗ failed (path",
	} {
		failed.Result = content.Words(text)
		d := fresh().User("go").Append(failed)
		require.NoError(t, d.Err())
		for _, width := range []int{80, 100} {
			log := logOf(t, d, &dag.LogOptions{Width: width, IDs: true})
			require.Contains(t, log, want)
		}
	}
	stopped := fresh().User("go").Append(node.StopReason{Reason: content.StopError, Detail: "529 overloaded", Turns: 8, Elapsed: time.Minute})
	require.Contains(t, logOf(t, stopped, &dag.LogOptions{Width: 44}), "error · 529 overloaded")
}

func TestRowsBeginWithShortIDsThatFindTheirNodes(t *testing.T) {
	child := fresh().WithSource(later(1)).User("inside").Assistant("yes")
	d := fresh().User("one").SubGraph("child", child).User("two")
	log := logOf(t, d, &dag.LogOptions{IDs: true})
	handles := regexp.MustCompile(`(?m)^(?:│ ┊ |┊ )*[○●▣] ([0-9a-f]{8,}) `).FindAllStringSubmatch(log, -1)
	require.Len(t, handles, 5, log)
	for _, h := range handles {
		n, err := d.Find(h[1])
		require.NoError(t, err)
		require.True(t, strings.HasSuffix(strings.ReplaceAll(n.ID().String(), "-", ""), h[1]))
	}
	require.NotRegexp(t, `[0-9a-f]{8}`, logOf(t, d, nil))
}
