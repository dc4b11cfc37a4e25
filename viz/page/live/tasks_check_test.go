package live_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/testkit/goldentest"
	"github.com/plait-dev/plait/viz/internal/viztest"
	"github.com/plait-dev/plait/viz/page"
	"github.com/plait-dev/plait/viz/page/live"
)

// The tests in this file have fifteen tasks done on the pages, each by mouse and by keyboard, in at most four steps. The
// tasks are in .ci/browser/page/tasks.json, which tasks.mjs beside it does and docs/tasks.md describes.

var pictures = flag.Bool("pictures", false, "take the pictures of docs/tasks anew")

const (
	taskFolder  = "../../../.ci/browser/page"
	taskPage    = "../../../docs/tasks.md"
	maxPicture  = 60 << 10 // bytes
	maxSteps    = 4
	numTasks    = 15
	taskPicture = "tasks/%s.webp" // beside the page
)

// task is something that a person wants to know or to do.
type task struct {
	Name, Task, Answer string
	Mouse, Keyboard    []taskStep
}

// taskStep is a step, which has one of these.
type taskStep struct {
	Open, Click, On, Of, Press, Type string
	OpenCopied                       bool
}

// tasks returns the tasks of tasks.json.
func tasks(t *testing.T) []task {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(taskFolder, "tasks.json"))
	require.NoError(t, err)
	var list []task
	require.NoError(t, json.Unmarshal(text, &list))
	return list
}

func TestFifteenTasksTakeFourStepsInARealBrowser(t *testing.T) {
	folder := viztest.BrowserCheck(t, "page", "PLAIT_BROWSER")
	dir := t.TempDir()
	addresses := writeTaskPages(t, dir)
	var deployments []*live.Server
	long := longRun()
	for _, way := range []string{"mouse", "keyboard"} {
		one, three := paused(t, 1), paused(t, 3)
		deployments = append(deployments, one, three)
		addresses["the live page of a paused run by "+way] = address(t, one)
		addresses["the live page of three calls that wait by "+way] = address(t, three)
		addresses["the live page of a run whose connection is lost by "+way] = losing(t, long)
	}
	create(t, dir, "addresses.json", func(w io.Writer) error { return json.NewEncoder(w).Encode(addresses) })

	// Every task is done in both ways.
	args := []string{"tasks.mjs", dir}
	if *pictures {
		kept, err := filepath.Abs(filepath.Dir(taskPage))
		require.NoError(t, err)
		args = append(args, "--pictures="+filepath.Join(kept, "tasks"))
	}
	var stderr bytes.Buffer
	cmd := exec.Command("node", args...)
	cmd.Dir, cmd.Stderr = folder, &stderr
	out, err := cmd.Output()
	done := 0
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); done++ {
		var v struct {
			Task, Way, Error string
			OK               bool
			Steps, MS        int
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &v))
		t.Logf("%s by %s: %d steps, %d ms", v.Task, v.Way, v.Steps, v.MS)
		if !v.OK || v.Steps > maxSteps {
			t.Errorf("%s by %s, after %d steps: %s", v.Task, v.Way, v.Steps, v.Error)
		}
	}
	require.NoError(t, err, stderr.String())
	require.Equal(t, 2*numTasks, done, stderr.String())

	// What was copied is a conversation that begins with the message before the failure.
	for _, way := range []string{"mouse", "keyboard"} {
		saved, err := os.ReadFile(filepath.Join(dir, "subtree by "+way))
		require.NoError(t, err)
		copied, err := dag.Read(bytes.NewReader(saved))
		require.NoError(t, err)
		require.Equal(t, 1601, copied.Len())
		first, _ := copied.Nodes()[0].Message()
		require.Equal(t, "I run the tests of storage/part13.", first.Blocks.Text())
	}

	// The approvals arrived.
	for _, s := range deployments {
		require.Equal(t, deployed, s.DAG().Text())
	}
}

// writeTaskPages writes the pages of the tasks, serves the live one, and returns their addresses by the names that the
// tasks have for them.
func writeTaskPages(t *testing.T, dir string) map[string]string {
	t.Helper()
	const title = "Move to the new storage API"
	d := longDay()
	create(t, dir, "day.html", func(w io.Writer) error {
		return page.Write(w, d, &page.Options{Title: title, Prices: taskPrices, Request: taskRequest})
	})
	create(t, dir, "runs.html", func(w io.Writer) error {
		return page.WriteReport(w, nightlyRuns(), &page.ReportOptions{Title: "Nightly runs", Currency: "USD"})
	})

	create(t, dir, "arabic.html", func(w io.Writer) error { return page.Write(w, arabic(), &page.Options{Title: "بيروت"}) })
	create(t, dir, "failures.html", func(w io.Writer) error { return page.Write(w, failures(), &page.Options{Title: "Nightly"}) })

	s := live.New(d, &live.Options{Title: title, Prices: taskPrices, Request: taskRequest})
	return map[string]string{
		"the page":                             "file://" + filepath.Join(dir, "day.html"),
		"the page about 200 runs":              "file://" + filepath.Join(dir, "runs.html"),
		"the page in Arabic":                   "file://" + filepath.Join(dir, "arabic.html"),
		"the page of 500 nodes":                "file://" + filepath.Join(dir, "failures.html"),
		"the list of a thousand conversations": thousand(t),
		"the live page at the first failure":   address(t, s) + "&" + d.Nodes()[400].ID().String(),
	}
}

// paused returns a live page on which calls wait for approval.
func paused(t *testing.T, calls int) *live.Server {
	t.Helper()
	agent, d := deployer(calls), deployment()
	s := live.New(d, &live.Options{Title: "Deployment", Resume: agent.ResumeStream})
	for _, err := range s.Watch(agent.Stream(t.Context(), d)) {
		if err != nil {
			require.ErrorAs(t, err, new(*executor.PausedError))
		}
	}
	return s
}

// losing serves a page whose first connection is lost as soon as all of d has been sent. Until the page is there again, the
// run goes on.
func losing(t *testing.T, d dag.DAG) string {
	t.Helper()
	s := live.New(d, nil)
	var begun atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/events" && begun.CompareAndSwap(false, true) {
			ctx, cancel := context.WithCancel(r.Context())
			s.ServeHTTP(&ending{w, cancel}, r.WithContext(ctx))
			s.Set(failsAtTheEnd(d))
			return
		}
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s.URL(server.Listener.Addr())
}

// ending is a response that ends after the first event with an activity, which follows the conversation.
type ending struct {
	http.ResponseWriter
	end func()
}

func (e *ending) Write(p []byte) (int, error) {
	n, err := e.ResponseWriter.Write(p)
	if bytes.Contains(p, []byte("event: activity")) {
		e.end()
	}
	return n, err
}

func (e *ending) Unwrap() http.ResponseWriter { return e.ResponseWriter }

// thousand serves a list of a thousand conversations, of which three are parked.
func thousand(t *testing.T) string {
	t.Helper()
	x := live.NewIndex(&live.IndexOptions{
		Title: "Tickets",
		List:  func(context.Context) ([]live.Entry, error) { return tickets(), nil },
		Open:  func(context.Context, string) (*live.Server, error) { return live.New(arabic(), nil), nil },
	})
	server := httptest.NewServer(x)
	t.Cleanup(server.Close)
	t.Cleanup(func() { require.NoError(t, x.Close()) })
	return x.URL(server.Listener.Addr())
}

// address serves a page until the test ends, and returns its address with the token.
func address(t *testing.T, s *live.Server) string {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s.URL(server.Listener.Addr())
}

func create(t *testing.T, dir, name string, write func(io.Writer) error) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, name))
	require.NoError(t, err)
	require.NoError(t, write(f))
	require.NoError(t, f.Close())
}

func TestTasksAreDescribedAsTheyAreDone(t *testing.T) {
	list := tasks(t)
	require.Len(t, list, numTasks)
	text := describeTasks(list)
	if *goldentest.Update {
		require.NoError(t, os.WriteFile(taskPage, []byte(text), 0o644))
	}
	described, err := os.ReadFile(taskPage)
	require.NoError(t, err)
	require.Equal(t, text, string(described), "run with -update to write %s", taskPage)

	for _, task := range list {
		require.LessOrEqual(t, max(len(task.Mouse), len(task.Keyboard)), maxSteps, task.Name)
		require.Equal(t, task.Mouse[0], task.Keyboard[0], "%s: the page to open", task.Name)
		info, err := os.Stat(filepath.Join(filepath.Dir(taskPage), fmt.Sprintf(taskPicture, task.Name)))
		require.NoError(t, err, "run with PLAIT_BROWSER=1 and -pictures to take it")
		require.LessOrEqual(t, info.Size(), int64(maxPicture), task.Name)
	}
}

// describeTasks returns docs/tasks.md.
func describeTasks(list []task) string {
	var b strings.Builder
	b.WriteString(`# Fifteen tasks

What people open a page of Plait for, by mouse and by keyboard, each in at most four steps with opening the page. A test
does each in a browser, and looks for the answer on the screen.
`)
	for i, task := range list {
		fmt.Fprintf(&b, "\n## %d. %s\n\n", i+1, task.Task)
		if page := task.Mouse[0].Open; page != "the page" {
			fmt.Fprintf(&b, "On %s:\n\n", page)
		}
		if len(task.Mouse) > 1 {
			fmt.Fprintf(&b, "- Mouse: %s.\n- Keyboard: %s.\n\n", inWords(task.Mouse[1:]), inWords(task.Keyboard[1:]))
		}
		fmt.Fprintf(&b, "%s\n\n![%s]("+taskPicture+")\n", task.Answer, task.Name, task.Name)
	}
	return b.String()
}

// inWords lists what to do, step by step.
func inWords(steps []taskStep) string {
	var list []string
	for _, s := range steps {
		switch {
		case s.Click != "" && s.On == "":
			list = append(list, "click into “"+s.Of+"”")
		case s.Click != "":
			list = append(list, "click “"+s.On+"”"+ofWhat(s.Of))
		case s.Press != "":
			list = append(list, "press `"+s.Press+"`")
		case s.Type != "":
			list = append(list, "type `"+s.Type+"`")
		case s.OpenCopied:
			list = append(list, "open it")
		}
	}
	return strings.Join(list, ", ")
}

// ofWhat names the group that a button belongs to.
func ofWhat(group string) string {
	if group == "" {
		return ""
	}
	return " of “" + group + "”"
}
