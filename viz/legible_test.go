package viz

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

// shapes build conversations of about n nodes, in which the tool calls that fails reports true for fail.
var shapes = map[string]func(n int, fails func() bool) dag.DAG{
	"long": func(n int, fails func() bool) dag.DAG {
		d := sampleStart().System("You fix bugs. Run the tests before you say that you are done.").Tools(tool("bash"), tool("read"))
		for made := 2; made < n-4; made += 6 {
			d = phase(d.User("Fix issue "+fmt.Sprint(made)+"."), 2, fails)
			d = d.Assistant("The cause is that the cursor is moved twice. I changed that.")
		}
		return d.Stop(content.StopEndTurn)
	},
	"wide": func(n int, fails func() bool) dag.DAG {
		d := sampleStart().User("Read all the files.")
		for made := 0; made < n; made += 62 {
			d = phase(d, min(60, max(n-4, 1)), fails).Assistant("Now the next ones.")
		}
		return d
	},
	"deep": func(n int, fails func() bool) dag.DAG {
		src := sampleStart().Source()
		inner := phase(dag.New().WithSource(src).User("Look at the last file."), 1, fails).Assistant("I have.")
		for made := 6; made < n; made += 12 {
			around := dag.New().WithSource(src)
			for range 2 {
				around = phase(around.User("Delegate that."), 1, fails)
			}
			e := node.ToolExecution{Result: content.Words("The sub-agent is done."), Child: node.ListOf(inner.Heads()...), IsError: fails()}
			inner = around.Assistant("", use("1", "delegate", `{"task":"look"}`)).CloseTools(e).Assistant("Done.")
		}
		return inner
	},
	"forked": func(n int, fails func() bool) dag.DAG {
		d := sampleStart().User("Try it in different ways.")
		var branches []dag.DAG
		for i := range max(n/6, 2) {
			branches = append(branches, phase(d.User(fmt.Sprint("Way ", i)), 2, fails).Assistant("It works."))
			if i%10 == 9 {
				d = branches[i]
			}
		}
		return branches[0].Join(branches[1:]...)
	},
	"merged": func(n int, fails func() bool) dag.DAG {
		d := sampleStart().User("Try it in three ways.")
		for made := 1; made < n-4; made += 20 {
			var ways []dag.DAG
			for i := range 3 {
				ways = append(ways, phase(d.User(fmt.Sprint("Way ", i)), 2, fails).Assistant("It works."))
			}
			d = ways[0].Join(ways[1:]...).User("Which is best?").Assistant("The second.")
		}
		return d
	},
}

// phase appends a tool phase of so many calls.
func phase(d dag.DAG, calls int, fails func() bool) dag.DAG {
	var uses []content.Block
	var runs []node.ToolExecution
	for i := range calls {
		tool := []string{"bash", "read"}[i%2]
		uses = append(uses, use(fmt.Sprint(i), tool, fmt.Sprintf(`{"path":"src/package%d/file_%d.go"}`, d.Head().Depth(), i)))
		e := ran(i, "ok, 31 lines")
		if fails() {
			e = failing(i, "exit status 1: undefined: cursor.Advance")
		}
		runs = append(runs, e)
	}
	return d.Assistant("", uses...).CloseTools(runs...)
}

// failures returns a function that reports true so many times, spread over calls.
func failures(n, calls int) func() bool {
	called, failed := 0, 0
	return func() bool {
		called++
		if failed < n && called*n >= (failed+1)*calls-calls/2 {
			failed++
			return true
		}
		return false
	}
}

// TestDrawingsOfAnySizeAreLegible draws conversations of many sizes and shapes, as they are drawn by default, on a screen of 1440 by
// 900 pixels: no drawing is wider, none has more than 80 boxes, and each tells how many calls failed and names the first and the last.
// With PLAIT_PICTURES=DIR the pictures are written there, to look at.
func TestDrawingsOfAnySizeAreLegible(t *testing.T) {
	sizes := []int{10, 60, 200, 2000}
	if !testing.Short() {
		sizes = append(sizes, 20_000)
	}
	for name, build := range shapes {
		for _, size := range sizes {
			calls := 0
			build(size, func() bool { calls++; return false })
			for _, failed := range []int{0, 1, 200} {
				failed = min(failed, calls)
				t.Run(fmt.Sprintf("%s, %d nodes, %d failed", name, size, failed), func(t *testing.T) {
					d := build(size, failures(failed, calls))
					require.NoError(t, d.Err())
					requireLegible(t, d, failed)
				})
			}
		}
	}
}

var countedFailures = regexp.MustCompile(`([\d,]+) failed`)

func requireLegible(t *testing.T, d dag.DAG, failed int) {
	t.Helper()
	p, vertices := layout(t, d, &LayoutOptions{}), outlineOf(d.Heads()).vertices
	require.LessOrEqual(t, len(p.Boxes), 80)
	require.LessOrEqual(t, p.Width, 1440)
	require.LessOrEqual(t, p.Height, 80*80, "as high as if all boxes were below each other")
	require.Equal(t, len(p.Boxes) < len(vertices), p.Note != nil, "a folded picture says so")
	if dir := os.Getenv("PLAIT_PICTURES"); dir != "" {
		file := filepath.Join(dir, strings.ReplaceAll(t.Name(), "/", ", ")+".svg")
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(svg(t, d, &SVGOptions{})), 0o600))
	}

	// Add up the failures that have a box and those that boxes count.
	seen, named := 0, map[int]bool{}
	for _, b := range p.Boxes {
		text := strings.Join(b.Lines, " ")
		if b.Node != nil {
			if b.Node.Failed() {
				require.Equal(t, StyleFailed, b.Style)
				seen, named[b.Number] = seen+1, true
			}
			continue
		}

		if vertices[b.Number].node.Failed() && strings.Contains(text, " inside (") {
			seen, named[b.Number] = seen+1, true
		}
		if m := countedFailures.FindStringSubmatch(text); m != nil {
			require.Equal(t, StyleFailed, b.Style)
			n, err := strconv.Atoi(strings.ReplaceAll(m[1], ",", ""))
			require.NoError(t, err)
			seen += n
		}
		for _, m := range regexp.MustCompile(` n(\d+) \w+:`).FindAllStringSubmatch(text, -1) {
			n, err := strconv.Atoi(m[1])
			require.NoError(t, err)
			named[n] = true
		}
	}
	require.Equal(t, failed, seen, "every failure is drawn or counted")

	var all []int
	for i, v := range vertices {
		if v.node.Failed() {
			all = append(all, i)
		}
	}
	if failed > 0 {
		require.True(t, named[all[0]], "the first failure, n%d, is named", all[0])
		require.True(t, named[all[len(all)-1]], "the last failure, n%d, is named", all[len(all)-1])
	}

	// The other formats have the same boxes.
	if len(vertices) > 10_000 {
		return
	}
	require.Equal(t, len(p.Boxes), strings.Count(dotOf(t, d, &DOTOptions{}), "tooltip="))
	require.Equal(t, len(p.Boxes), strings.Count(svg(t, d, &SVGOptions{}), `role="listitem"`))
	boxes := 0
	for _, id := range takeApart(t, draw(t, d, nil)).nodes {
		if id != "note0" {
			boxes++
		}
	}
	require.Equal(t, len(p.Boxes), boxes)
}
