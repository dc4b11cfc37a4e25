package page

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/internal/testkit/fixture"
	_ "github.com/plait-dev/plait/internal/testkit/quick"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/viz"
	"github.com/plait-dev/plait/viz/internal/viztest"
	"github.com/plait-dev/plait/viz/page/internal/web"
)

// The test in this file opens pages in a browser and uses them as a person does. It runs where PLAIT_BROWSER is set, to
// 1 for Chromium or to firefox, and then fails where node, its packages or the browser are missing
// (.ci/browser/install.sh installs them).

// checks are what check.mjs does, each by its name.
var checks = []string{
	"opens", "keyboard", "scripts", "panels", "folds", "search", "found", "filters", "compare", "sub-agents", "deep links", "calls", "timeline", "cache", "problems", "inspector", "request", "long texts",
	"copies", "dark", "contrast", "print", "motion", "hostile", "hostile names", "reading", "images", "policy", "barriers", "narrow", "roles", "without JavaScript", "live", "live silence", "long event", "live refused", "live link",
	"live errors", "long compare", "long numbers", "folded graph", "2000 nodes",
	"20000 nodes",
}

func requireBrowser(t *testing.T) string {
	t.Helper()
	return viztest.BrowserCheck(t, "page", "PLAIT_BROWSER")
}

func TestPagesInARealBrowser(t *testing.T) {
	requireBrowser(t)
	dir := t.TempDir()
	writeReleases(t, dir)
	writeHostile(t, dir, viztest.Hostile)
	writeChain(t, dir)
	writeLong(t, dir)
	writeLive(t, dir)
	writeBranches(t, dir)
	writeNarrow(t, dir)
	create(t, dir, "scripts.html", func(w io.Writer) error { return Write(w, viztest.Scripts(), nil) })
	create(t, dir, "tangled.html", func(w io.Writer) error { return Write(w, tangled(300), nil) })
	create(t, dir, "folded.html", func(w io.Writer) error { return Write(w, folded(), nil) })
	create(t, dir, "reading.html", func(w io.Writer) error { return Write(w, reading(), nil) })
	create(t, dir, "broken.html", func(w io.Writer) error { return Write(w, broken(), &Options{Prices: prices}) })
	for name, n := range map[string]int{"2000.html": 2_000, "20000.html": 20_000} {
		create(t, dir, name, func(w io.Writer) error { return Write(w, talk(n), nil) })
	}

	check(t, dir, checks)

	// What was copied to be drawn by the command.
	copied, err := dag.Load(filepath.Join(dir, "copied.json"))
	require.NoError(t, err)
	require.True(t, dag.Equal(tangled(300), copied))
	require.NoError(t, viz.SVG(io.Discard, copied, nil))
}

func TestRecordedHostileTextsInARealBrowser(t *testing.T) {
	requireBrowser(t)
	recorded, err := os.ReadFile(fixture.Path(t, "mermaid-check", "labels.jsonl"))
	require.NoError(t, err)
	var texts []string
	for line := range bytes.Lines(recorded) {
		var label struct{ Label string }
		require.NoError(t, json.Unmarshal(line, &label))
		texts = append(texts, label.Label)
	}
	require.NotEmpty(t, texts)
	dir := t.TempDir()
	writeHostile(t, dir, texts)
	check(t, dir, []string{"hostile"})
}

// check lets check.mjs do the checks on the pages in dir.
func check(t *testing.T, dir string, checks []string) {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command("node", append([]string{"check.mjs", dir}, checks...)...)
	cmd.Dir, cmd.Stderr = requireBrowser(t), &stderr
	out, err := cmd.Output()

	done := map[string]bool{}
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var v struct {
			Name, Error, Info string
			OK                bool
			MS                int
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &v), "%s", lines.Bytes())

		done[v.Name] = true
		if v.OK {
			t.Logf("%s: %d ms %s", v.Name, v.MS, v.Info)
		} else {
			t.Errorf("%s: %s", v.Name, v.Error)
		}
	}

	for _, name := range checks {
		require.True(t, done[name], "%s was not checked: %v\n%s", name, err, stderr.String())
	}
	require.Len(t, done, len(checks))
}

func create(t *testing.T, dir, name string, write func(io.Writer) error) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, name))
	require.NoError(t, err)
	require.NoError(t, write(f))
	require.NoError(t, f.Close())
}

// writeReleases writes the page of the release, and what its copies have to be.
var prices = api.Prices{"claude-sonnet-4-5": {Input: 3, Output: 15, CacheRead: 0.3, CacheWrite: 3.75}}

func writeReleases(t *testing.T, dir string) {
	d := release()
	create(t, dir, "release.html", func(w io.Writer) error {
		return Write(w, d, &Options{Title: "Release 2.4", Prices: prices, Request: request})
	})
	create(t, dir, "release.json", d.Write)
	create(t, dir, "release.mmd", func(w io.Writer) error { return viz.Mermaid(w, d, nil) })
	last := d.AtRef("fix").Nodes()
	for _, n := range last {
		if m, ok := n.Message(); ok && m.Role == content.Assistant {
			body, err := request(d.WithHeads(n.Parents()...), n)
			require.NoError(t, err)
			create(t, dir, "request.json", func(w io.Writer) error { _, err := w.Write(body); return err })
		}
	}
}

// writeChain writes a page whose 600 requests are 75 MB together, and some of the requests.
func writeChain(t *testing.T, dir string) {
	d := start()
	for i := range 600 {
		d = d.User(strings.Repeat(fmt.Sprintf("😀 Question %d? ", i), 16)).Assistant(fmt.Sprintf("Answer %d.", i))
	}
	create(t, dir, "chain.html", func(w io.Writer) error { return Write(w, d, &Options{Request: request}) })

	var bodies [][2]string
	for _, i := range []int{1199, 3, 601} {
		n := d.Nodes()[i]
		body, err := request(d.WithHeads(n.Parents()...), n)
		require.NoError(t, err)
		bodies = append(bodies, [2]string{fmt.Sprintf("n%d", i), string(body)})
	}
	create(t, dir, "chain.json", func(w io.Writer) error { return json.NewEncoder(w).Encode(bodies) })
}

// writeLong writes a page with a text of 12 million characters, which the request has as well, and with a fan of 2,000
// calls.
func writeLong(t *testing.T, dir string) {
	var calls []content.Block
	for i := range 2_000 {
		calls = append(calls, content.ToolUse{ID: fmt.Sprint(i), Name: "look", Input: "{}"})
	}
	d := dag.New().User(strings.Repeat("A long text. ", 1_000_000)).Assistant("I look.", calls...).CloseTools().Assistant("Done.")
	create(t, dir, "long.html", func(w io.Writer) error { return Write(w, d, &Options{Request: request}) })
}

// writeNarrow writes a page with requests whose words are wider than a small window. The third one is not known.
func writeNarrow(t *testing.T, dir string) {
	long := func(letter string) string { return strings.Repeat(letter, 300) }
	d := dag.New().User(long("a")).Assistant("An oak.").User(long("b")).Assistant("A fir.").User("More?").Assistant("A yew.")
	unknown := d.Head().ID()
	d = d.User("And?").Assistant("An elm.")
	create(t, dir, "narrow.html", func(w io.Writer) error {
		return Write(w, d, &Options{Request: func(before dag.DAG, answer *node.Node) ([]byte, error) {
			if answer.ID() == unknown {
				return nil, errors.New("no such key: " + long("k"))
			}
			return request(before, answer)
		}})
	})
}

// writeBranches writes a page with two branches of 601 nodes each: one pair of sentences that have much in common, and
// 600 pairs that have next to nothing.
func writeBranches(t *testing.T, dir string) {
	start := dag.New().User("Tell me about trees.")
	a, b := start.Assistant("Oaks grow slowly, and live for a thousand years."), start.Assistant("Oaks grow slowly, and live for a hundred years.")
	a, b = a.User("Where?").Assistant("In the north."), b.User("Where?").Assistant("In the north.")
	for i := range 299 {
		a = a.User(fmt.Sprintf("What is number %d?", i)).Assistant("A pine stands on the hill, where the wind blows.")
		b = b.User("Please go on with the next kind.").Assistant("It is a birch: its bark is white, and peels off in strips.")
	}
	create(t, dir, "branches.html", func(w io.Writer) error { return Write(w, a.Join(b), nil) })
}

// said is a text, and the number of the node that must show it.
type said struct {
	N    int    `json:"n"`
	Text string `json:"text"`
}

// writeHostile writes pages that say every hostile text, in every place that holds text, and which text each node must
// show.
func writeHostile(t *testing.T, dir string, texts []string) {
	d, names, now := dag.New(), dag.New(), time.Now()
	var all []said
	for _, text := range texts {
		text = safetext.UTF8(text)
		if text == "" {
			continue
		}

		all = append(all, said{d.Len(), text})
		d = d.User(text)
		input, err := content.ToJSON(map[string]string{"x": text})
		require.NoError(t, err)
		blocks, err := content.Of(content.Text{Text: text}, use(text, string(input)), content.Thinking{Text: text})
		require.NoError(t, err)

		names = names.Append(node.System{Text: text}).
			Append(node.Message{Role: content.Assistant, Blocks: blocks,
				Answer: node.Answer{API: text, Model: text, Usage: content.Usage{Input: 1, Output: 1}}}).
			Append(node.ToolExecution{Tool: text, Input: input, Result: content.Words(text), IsError: true, Started: now, Ended: now.Add(time.Minute)}).
			Append(node.SubGraph{Title: text, Heads: node.ListOf(dag.New().User(text).Head()), Summary: text}).
			Append(node.Custom{Name: text, JSON: input}).
			Append(node.StopReason{Reason: content.Stop(text), Detail: text})
		require.NoError(t, names.Err(), "%q", text)
	}

	create(t, dir, "hostile.html", func(w io.Writer) error {
		return Write(w, d.Join(d.User("the other end")), &Options{Title: all[0].Text})
	})
	create(t, dir, "hostile.json", func(w io.Writer) error { return json.NewEncoder(w).Encode(all) })

	// The request of one response is known, and that of the others is an error with a hostile text.
	last := names.User("And now?").Assistant("I look.")
	create(t, dir, "names.html", func(w io.Writer) error {
		return Write(w, last, &Options{Title: all[0].Text, Request: func(d dag.DAG, n *node.Node) ([]byte, error) {
			if n.ID() != last.Head().ID() {
				return nil, errors.New(texts[0])
			}
			return request(d, n)
		}})
	})

	pixel := "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
	drawing := "PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIG9ubG9hZD0iYWxlcnQoMSkiLz4="
	images := dag.New().
		User("", content.Image{Source: content.Source{MediaType: "image/png", Data: pixel}}).
		User("", content.Image{Source: content.Source{MediaType: "image/png", Data: drawing}}).
		User("", content.Image{Source: content.Source{MediaType: "image/svg+xml", Data: drawing}}).
		User("", content.Image{Source: content.Source{URL: "https://example.org/spy.png"}})
	create(t, dir, "images.html", func(w io.Writer) error { return Write(w, images, nil) })
}

// writeLive writes a live page, and what its server sends: one stream that ends while a tool runs, and the one after
// it.
func writeLive(t *testing.T, dir string) {
	m := web.NewModel()
	create(t, dir, "live.html", func(w io.Writer) error {
		return web.WritePage(w, web.Config{Title: "Live", Live: true, CanRun: true}, web.Changes{})
	})
	first, second := dag.New().User("Name a tree.").Assistant("An oak."), dag.DAG{}
	second = first.User("Another?").Assistant("A fir.")
	for i, d := range []dag.DAG{first, second} {
		_, err := m.Update(d)
		require.NoError(t, err)
		p := m.Whole().Patch()
		create(t, dir, []string{"patch1.json", "patch2.json"}[i], func(w io.Writer) error { return json.NewEncoder(w).Encode(p) })
	}
}

// broken is a conversation with prefixes that broke: the system prompt changes at the fourth request, the seventh comes
// a day later, and one response has no token count.
func broken() dag.DAG {
	b := newBook()
	rules := strings.Repeat("Answer in one sentence. ", 300)
	d := b.begin().SetSystem("day", "Today is Monday. "+rules)
	whole := int64(1800)

	for i := range 12 {
		usage := [4]int64{12, 30, whole, 40}
		switch i {
		case 0, 6:
			usage = [4]int64{12, 30, 0, whole + 40}
			b.now = b.now.Add(time.Duration(i) * 4 * time.Hour)
		case 3:
			d = d.SetSystem("day", "Today is Tuesday. "+rules)
			usage = [4]int64{whole + 52, 30, 0, 0}
		case 9:
			usage = [4]int64{}
		}

		d = b.answer(d.User(fmt.Sprintf("Question %d?", i)), "An answer.", content.StopEndTurn, usage)
		whole += 80
	}
	return d
}

// folded is a conversation that is drawn folded: turns of which one failed, a wide fan with a tool of a hostile name,
// and a sub-agent.
func folded() dag.DAG {
	const img = `<img src=x onerror="window.pwned=1">`
	d := newBook().begin()
	for i := range 72 {
		e := node.ToolExecution{Index: 1, Result: content.Words("Oak, fir, elm.")}
		if i == 40 {
			e = node.ToolExecution{Index: 1, Result: content.Words("no such tree: " + img), IsError: true}
		}
		d = d.User(fmt.Sprintf("Question %d about trees?", i)).Assistant("I look it up.", use("search", `{"query":"trees"}`)).
			CloseTools(e).Assistant("There are oaks, firs and elms.")
	}

	uses, results := make([]content.Block, 30), make([]node.ToolExecution, 30)
	for i := range uses {
		uses[i] = content.ToolUse{ID: fmt.Sprint(i), Name: []string{"search", img}[i%2], Input: `{}`}
		results[i] = node.ToolExecution{Index: i, Result: content.Words("A tree.")}
	}
	inner := dag.New().User("Which is the oldest?").Assistant("The oak.").User("And then?").Assistant("The fir.")
	return d.User("All of them.").Assistant("", uses...).CloseTools(results...).SubGraph("oldest", inner).Assistant("Done.")
}

// reading is a conversation with texts that are not easy to read as JSON: code, replacements, a result of many rows.
func reading() dag.DAG {
	var rows []string
	for i := range 300 {
		rows = append(rows, fmt.Sprintf(`{"id":%d,"name":"row %d"}`, i, i))
	}
	return dag.New().User("Change it.").Assistant("I edit it:\n\n```go\nfunc main() {}\n```\nThen `go test`.",
		use("edit", `{"path":"main.go","old_string":"func main() {\n\tprintln(1)\n}","new_string":"func main() {\n\tprintln(2)\n\tprintln(3)\n}","replace_all":false}`),
		use("edits", `{"path":"a.txt","edits":[{"oldText":"a","newText":"b"}]}`),
		use("write", `{"__proto__":{"path":"a"},"path":"b.go","content":"package main\n\n<b>no markup</b>\n"}`)).
		CloseTools(node.ToolExecution{Index: 1, Result: content.Words("ok")}, node.ToolExecution{Index: 2, Result: content.Words("ok")},
			node.ToolExecution{Index: 3, Result: content.Words(`{"rows":[` + strings.Join(rows, ",") + `],"big":12345678901234567890}`)}).
		Assistant("Done.")
}
