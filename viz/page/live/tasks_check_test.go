package live_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/testkit/goldentest"
	"github.com/plait-dev/plait/viz/internal/viztest"
	"github.com/plait-dev/plait/viz/page"
	"github.com/plait-dev/plait/viz/page/live"
)

// The tests in this file have ten tasks done on the pages, each by mouse and by keyboard, in at most four steps. The
// tasks are in .ci/browser/page/tasks.json, which tasks.mjs beside it does and docs/tasks.md describes.

var pictures = flag.Bool("pictures", false, "take the pictures of docs/tasks anew")

const (
	taskFolder  = "../../../.ci/browser/page"
	taskPage    = "../../../docs/tasks.md"
	maxPicture  = 60 << 10 // bytes
	maxSteps    = 4
	numTasks    = 10
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

func TestTenTasksTakeFourStepsInARealBrowser(t *testing.T) {
	folder := viztest.BrowserCheck(t, "page", "PLAIT_BROWSER")
	dir := t.TempDir()
	byMouse, byKeyboard := paused(t), paused(t)
	addresses := writeTaskPages(t, dir)
	addresses["the live page of a paused run by mouse"] = address(t, byMouse)
	addresses["the live page of a paused run by keyboard"] = address(t, byKeyboard)
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
	for _, s := range []*live.Server{byMouse, byKeyboard} {
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

	s := live.New(d, &live.Options{Title: title, Prices: taskPrices, Request: taskRequest})
	return map[string]string{
		"the page":                           "file://" + filepath.Join(dir, "day.html"),
		"the page about 200 runs":            "file://" + filepath.Join(dir, "runs.html"),
		"the live page at the first failure": address(t, s) + "&" + d.Nodes()[400].ID().String(),
	}
}

// paused returns a live page on which a call waits for approval.
func paused(t *testing.T) *live.Server {
	t.Helper()
	agent, d := deployer(), deployment()
	s := live.New(d, &live.Options{Title: "Deployment", Resume: agent.ResumeStream})
	for _, err := range s.Watch(agent.Stream(t.Context(), d)) {
		if err != nil {
			require.ErrorAs(t, err, new(*executor.PausedError))
		}
	}
	return s
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
	b.WriteString(`# Ten tasks

What people open a page of Plait for, by mouse and by keyboard, each in at most four steps with opening the page.
` + "`PLAIT_BROWSER=1 go test -run RealBrowser ./viz/page/live`" + ` does each in a browser and looks for the answer on the
screen; ` + "`-pictures`" + ` takes the pictures anew.
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
