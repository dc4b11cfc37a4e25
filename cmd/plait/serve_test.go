package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/viz/page/live"
)

// patience is how long tests wait for what must happen. Only a test that hangs waits for so long.
const patience = time.Minute

// watching is a watched file without a command around it, and what was said of it.
func watching(t *testing.T, path string) (*watched, *live.Server, *[]string) {
	t.Helper()
	page := live.New(dag.New(), nil)
	t.Cleanup(func() { require.NoError(t, page.Close()) })
	var said []string
	files := &streams{ctx: t.Context()}
	t.Cleanup(func() { require.NoError(t, files.databases.close()) })
	w := &watched{path: path, stored: stored(path), streams: files, page: page, say: func(format string, args ...any) {
		said = append(said, strings.ReplaceAll(fmt.Sprintf(format, args...), path, "FILE"))
	}}
	w.refresh()
	return w, page, &said
}

func saved(t *testing.T, path string, d dag.DAG) {
	t.Helper()
	require.NoError(t, d.Save(path))
}

func TestTheLastGoodStateOfAFileIsShown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "talk.json")
	w, page, said := watching(t, path)
	require.Equal(t, []string{"FILE does not exist yet"}, *said)
	w.refresh()
	require.Len(t, *said, 1, "it is said once")

	first := dag.New().User("Hi")
	saved(t, path, first)
	w.refresh()
	require.True(t, dag.Equal(first, page.DAG()))
	require.Equal(t, "FILE can be read again", (*said)[1])

	second := first.Assistant("Hello")
	saved(t, path, second) // replaced by another file
	w.refresh()
	require.True(t, dag.Equal(second, page.DAG()))

	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, whole[:len(whole)/2], 0o600)) // another program is writing it
	w.refresh()
	require.True(t, dag.Equal(second, page.DAG()))
	require.Contains(t, (*said)[2], "load FILE: line ")
	require.Contains(t, (*said)[2], "; the page shows the version before")
	require.NoError(t, os.WriteFile(path, whole, 0o600))
	w.refresh()
	require.Equal(t, "FILE can be read again", (*said)[3])

	require.NoError(t, os.Remove(path))
	w.refresh()
	require.True(t, dag.Equal(second, page.DAG()))
	require.Equal(t, "FILE does not exist; the page shows the version before", (*said)[4])
	require.NoError(t, os.Mkdir(path, 0o700))
	w.refresh()
	require.Contains(t, (*said)[5], "is a directory")
	require.Len(t, *said, 6)
}

func TestAFileOfTheSameSizeAndTimeIsAnotherFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "talk.json")
	saved(t, path, dag.New().User("Hi"))
	w, page, _ := watching(t, path)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	stat, err := os.Stat(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path+".new", []byte(strings.Replace(string(data), `"Hi"`, `"Ho"`, 1)), 0o600))
	require.NoError(t, os.Chtimes(path+".new", stat.ModTime(), stat.ModTime()))
	require.NoError(t, os.Rename(path+".new", path))
	w.refresh()
	m, _ := page.DAG().Head().Message()
	require.Equal(t, "Ho", m.Blocks.Text())
}

func TestAJournalIsShownAsItGrows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "talk.jsonl")
	j, err := dag.OpenJournal(path, nil)
	require.NoError(t, err)
	defer j.Close()
	w, page, said := watching(t, path)
	d := dag.New()
	for i := range 3 {
		d = d.User(fmt.Sprint(i))
		require.NoError(t, j.Append(d))
		w.refresh()
		require.True(t, dag.Equal(d, page.DAG()))
	}
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, j.Append(d.User("torn")))
	longer, err := os.ReadFile(path)
	require.NoError(t, err)
	for cut := len(whole); cut < len(longer); cut++ { // a last line that is not written to its end
		require.NoError(t, os.WriteFile(path, longer[:cut], 0o600))
		w.refresh()
		require.True(t, dag.Equal(d, page.DAG()))
	}
	require.NoError(t, os.WriteFile(path, longer, 0o600))
	w.refresh()
	require.True(t, dag.Equal(d.User("torn"), page.DAG()))
	require.Empty(t, *said, "a line that is being written is nothing wrong")
}

func TestChangesOfTheFileAndOfThePageAreBothSaved(t *testing.T) {
	for _, kind := range []string{"document", "journal", "database"} {
		t.Run(kind, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "talk")
			if kind == "database" {
				path += ".db#alice/42"
			}
			read := func() (dag.DAG, error) {
				other := &streams{ctx: t.Context()}
				defer other.databases.close()
				return other.load(path)
			}
			write := func(d dag.DAG) {
				other := &streams{ctx: t.Context()}
				defer other.databases.close()
				require.NoError(t, other.save(path, d))
			}
			if kind == "journal" {
				write = func(d dag.DAG) { require.NoError(t, appended(path, d)) }
			}
			d := dag.New().User("Name a tree.").Assistant("An oak.")
			write(d)
			w, page, _ := watching(t, path)
			fork := d.Back(1).User("Name a bird.")
			page.Set(d.Join(fork))
			require.NoError(t, w.save(page.DAG))
			back, err := read()
			require.NoError(t, err)
			require.True(t, dag.Equal(d.Join(fork), back))
			w.refresh()
			require.True(t, dag.Equal(d.Join(fork), page.DAG()), "its own file is no news")

			more := back.WithHeads(back.Heads()[0]).User("Another program's.")
			write(more)
			require.NoError(t, w.save(page.DAG))
			back, err = read()
			require.NoError(t, err)
			require.True(t, dag.Equal(more, back), "what is not being run is the file's own")
		})
	}
}

func TestABrokenFileIsLeftAsItIs(t *testing.T) {
	for name, data := range map[string]string{
		"broken":  "{",
		"written": `{"format":"plait-journal","version":1}` + "\n" + `{"id":"x`,
	} {
		path := filepath.Join(t.TempDir(), "talk.json")
		saved(t, path, dag.New().User("Hi"))
		w, page, _ := watching(t, path)
		require.NoError(t, os.WriteFile(path, []byte(data), 0o600))
		d := page.DAG().Assistant("Hello")
		var other string
		for range 2 {
			err := w.save(func() dag.DAG { return d })
			require.ErrorContains(t, err, "is broken, missing or being written, and is not overwritten; the conversation is in ", name)
			_, other, _ = strings.Cut(err.Error(), "the conversation is in ")
		}
		now, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, data, string(now))
		back, err := dag.Load(other)
		require.NoError(t, err)
		require.True(t, dag.Equal(d, back))
		files, err := filepath.Glob(path + ".run-*")
		require.NoError(t, err)
		require.Len(t, files, 1, "the second time it is the same file")
	}
}

func TestAConversationThatItsDatabaseRefusesIsInATemporaryFile(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	path := filepath.Join(t.TempDir(), "sessions.db#alice/42")
	first := &streams{ctx: t.Context()}
	require.NoError(t, first.save(path, dag.New().User("Hi")))
	require.NoError(t, first.databases.close())

	w, page, _ := watching(t, path)
	require.NoError(t, w.databases.close())
	for d := page.DAG().Assistant("Hello"); d.Len() < 4; d = d.User("More") {
		err := w.save(func() dag.DAG { return d })
		_, other, ok := strings.Cut(err.Error(), "; the conversation is in ")
		require.True(t, ok, err)
		back, err := dag.Load(other)
		require.NoError(t, err)
		require.True(t, dag.Equal(d, back))
	}

	files, err := filepath.Glob(filepath.Join(temp, "sessions.db.run-*.json"))
	require.NoError(t, err)
	require.Len(t, files, 1, "the second time it is the same file")
}

// visit is plait serve, as a browser meets it.
type visit struct {
	t     *testing.T
	url   string
	token string
	lines *bufio.Reader
}

// serving runs plait serve until the test ends, and checks that it ends well then.
func serving(t *testing.T, args ...string) *visit {
	t.Helper()
	ctx, interrupt := context.WithCancel(context.Background())
	out, in := io.Pipe()
	ended := make(chan int)
	go func() {
		code := plait(ctx, append([]string{"serve"}, args...), strings.NewReader(""), in, io.Discard)
		in.CloseWithError(io.EOF)
		ended <- code
	}()
	t.Cleanup(func() {
		interrupt()
		require.Equal(t, exitDone, <-ended)
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	url, token, ok := strings.Cut(strings.TrimSpace(line), "/#token=")
	require.True(t, ok, line)
	return &visit{t: t, url: url, token: token}
}

func (v *visit) ask(method, path, body string) *http.Response {
	ctx, cancel := context.WithTimeout(v.t.Context(), patience)
	v.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, method, v.url+path, strings.NewReader(body))
	require.NoError(v.t, err)
	req.Header.Set("Authorization", "Bearer "+v.token)
	res, err := http.DefaultClient.Do(req)
	require.NoError(v.t, err)
	v.t.Cleanup(func() { res.Body.Close() })
	return res
}

// until reads events until the words were seen in order, each in the line of the one before it or in a later one.
func (v *visit) until(words ...string) {
	v.t.Helper()
	if v.lines == nil {
		v.lines = bufio.NewReader(v.ask("GET", "/events", "").Body)
	}

	// Events may be sent together in one line, so that the next word can be in the line that held the last one.
	for line := ""; len(words) > 0; {
		if strings.Contains(line, words[0]) {
			words = words[1:]
			continue
		}
		var err error
		line, err = v.lines.ReadString('\n')
		require.NoError(v.t, err, "before %q", words)
	}
}

// untilAll reads events until all words were seen, in any order: a conversation is drawn beside the run, so that its
// last node may arrive after the end of the run.
func (v *visit) untilAll(words ...string) {
	v.t.Helper()
	for len(words) > 0 {
		line, err := v.lines.ReadString('\n')
		require.NoError(v.t, err, "before %q", words)
		words = slices.DeleteFunc(words, func(word string) bool { return strings.Contains(line, word) })
	}
}

func TestServeFollowsTheFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "talk.json")
	v := serving(t, path)
	v.until("does not exist yet")
	d := dag.New().User("Name a tree.")
	saved(t, path, d)
	v.until("Name a tree.")
	saved(t, path, d.Assistant("An oak."))
	v.until("An oak.")
	require.Equal(t, http.StatusForbidden, v.ask("POST", "/fork", fmt.Sprintf(`{"at":%q,"text":"Hi"}`, d.Head().ID())).StatusCode)
	require.Equal(t, http.StatusOK, v.ask("GET", "/", "").StatusCode)
}

func TestServeShowsCosts(t *testing.T) {
	folder := t.TempDir()
	prices := filepath.Join(folder, "prices.json")
	require.NoError(t, os.WriteFile(prices, []byte(`{"currency":"USD","date":"2026-11-01","models":{"m":{"input":2,"output":10}}}`), 0o600))
	path := filepath.Join(folder, "talk.json")
	saved(t, path, dag.New().User("Name a tree.").Append(node.Message{
		Role: content.Assistant, Blocks: content.Words("An oak."),
		Answer: node.Answer{API: "x", Model: "m", Usage: content.Usage{Input: 1_000_000, Output: 50_000}},
	}))
	serving(t, path, "--prices", prices).until(`"cost":2.5`)
	require.NotEqual(t, exitDone, plait(t.Context(), []string{"serve", path, "--prices", path}, strings.NewReader(""), io.Discard, io.Discard))
}

func TestServeRunsAndSaves(t *testing.T) {
	model := httptest.NewServer(fake.Anthropic(fake.AnthropicMessage(content.Text{Text: "A pine, then."})))
	defer model.Close()
	path := filepath.Join(t.TempDir(), "talk.json")
	d := dag.New().User("Name a tree.").Assistant("An oak.")
	saved(t, path, d)
	v := serving(t, path, "--provider", "anthropic", "--model", "claude-test", "--base-url", model.URL, "--no-stream")
	v.until(`"state":"idle"`)
	res := v.ask("POST", "/fork", fmt.Sprintf(`{"at":%q,"text":"Another one."}`, d.Nodes()[0].ID()))
	require.Equal(t, http.StatusAccepted, res.StatusCode)
	v.until(`"state":"running"`)
	v.untilAll("A pine, then.", `"state":"idle"`)
	back, err := dag.Load(path)
	require.NoError(t, err)
	require.Len(t, back.Heads(), 2)
	require.Equal(t, d.Head().ID(), back.Heads()[0].ID(), "the old end is untouched")
	require.Equal(t, "A pine, then.", back.WithHeads(back.Heads()[1]).Text())
	require.Contains(t, string(back.Metadata().Get(runKey)), "claude-test")

	answer := back.Heads()[1].Parent(0)
	body, err := io.ReadAll(v.ask("GET", "/request?node="+answer.ID().String(), "").Body)
	require.NoError(t, err)
	require.Contains(t, string(body), `"model":"claude-fake"`, "the answer says so")
	require.NotContains(t, string(body), `"stream"`)
	require.Contains(t, string(body), "Another one.")
	require.NotContains(t, string(body), "An oak.")
}

func TestServeContinuesAPausedRunInPlace(t *testing.T) {
	model := httptest.NewServer(fake.Anthropic(
		fake.AnthropicMessage(content.ToolUse{ID: "c1", Name: "remove", Input: `{"city":"Rome"}`}),
		fake.AnthropicMessage(content.Text{Text: "Rome is gone."})))
	defer model.Close()
	path := filepath.Join(t.TempDir(), "talk.json")
	saved(t, path, dag.New().
		Tools(executor.DeferredTool(content.Tool{Name: "remove", Schema: `{"type":"object"}`})).User("Remove Rome."))
	flags := []string{"--provider", "anthropic", "--model", "claude-test", "--base-url", model.URL, "--no-stream", "--approve"}
	t.Setenv("ANTHROPIC_API_KEY", "none")
	_, errs, code := command("", append([]string{"run", path, "--defer-tools"}, flags...)...)
	require.Equal(t, exitPaused, code, errs)

	v := serving(t, append([]string{path}, flags...)...)
	v.until(`"paused":[{`, `"asks":"approval"`)
	answer := func(reply string) *http.Response {
		d, err := dag.Load(path)
		require.NoError(t, err)
		return v.ask("POST", "/answer", fmt.Sprintf(`{"pause":%q,"call":%q,"reply":%s}`, executor.ContinuationOf(d).ID, d.Pending()[0].Key, reply))
	}

	require.Equal(t, http.StatusAccepted, answer(`{"approve":true}`).StatusCode)
	v.until(`"asks":"result"`, `"state":"idle"`) // nothing here executes the tool
	require.Equal(t, http.StatusAccepted, answer(`{"result":"gone"}`).StatusCode)
	v.until(`"state":"running"`)
	v.untilAll("Rome is gone.", `"state":"idle"`)

	back, err := dag.Load(path)
	require.NoError(t, err)
	require.Equal(t, "Rome is gone.", back.Text())
	require.Len(t, back.Heads(), 1)
	require.Empty(t, back.Pending(), "the pause is used")
}

func TestServeIsRefused(t *testing.T) {
	for want, args := range map[string][]string{
		"--addr 0.0.0.0:0: other machines can reach this address; --allow-remote allows that": {"x.json", "--addr", "0.0.0.0:0"},
		"--addr :0: other machines can reach this address":                                    {"x.json", "--addr", ":0"},
		"serve needs a file, not standard input":                                              {"-"},
		`--provider "nobody" is not one of`:                                                   {"x.json", "--provider", "nobody"},
		"serve takes one FILE":                                                                {},
		"missing port":                                                                        {"x.json", "--addr", "localhost"},
	} {
		_, errs, code := command("", append([]string{"serve"}, args...)...)
		require.Equal(t, exitBad, code)
		require.Contains(t, errs, want)
	}
}

func TestAnEndOfTheListenerIsAnError(t *testing.T) {
	v := &served{runner: runner{streams: &streams{err: io.Discard}}}
	ended := make(chan error, 1)
	lost := errors.New("lost")
	ended <- lost
	require.Equal(t, lost, v.follow(t.Context(), ended, func() {}))
}
