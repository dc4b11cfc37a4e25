package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/testkit/goldentest"
)

// The test's own binary is the program, where the environment says so.
func TestMain(m *testing.M) {
	if os.Getenv("PLAIT_DEFERRED") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// id is the ID of a message, which is another one each time.
var id = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-`)

// process runs one step in a process of its own, in a folder.
func process(folder string, args ...string) (out string, err error) {
	program := exec.Command(os.Args[0], args...)
	program.Dir = folder
	// With -race, each process would wait for a second at its end.
	program.Env = append(os.Environ(), "PLAIT_DEFERRED=1", "GORACE=atexit_sleep_ms=0")
	printed, err := program.CombinedOutput()
	return goldentest.WithoutTimes(id.ReplaceAllString(string(printed), "")), err
}

func step(t *testing.T, folder, want string, args ...string) {
	t.Helper()
	out, err := process(folder, args...)
	if err != nil || out != want {
		t.Fatalf("deferred %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

const (
	asked = `◆ tools     count_stock
○ user      Where do we have the most bolts?
● assistant [3 calls wait] I let somebody count. → count_stock ×3
├─┬─╮
▪ │ │ (head 1) count_stock(city: "Lima") → awaiting tool results
  ▪ │ (head 2) count_stock(city: "Oslo") → awaiting tool results
    ▪ (head 3) count_stock(city: "Rome") → awaiting tool results

waiting for handover/tasks/1.json
waiting for handover/tasks/2.json
waiting for handover/tasks/3.json
`
	worked = `handover/tasks/1.json → handover/results/1.json
handover/tasks/2.json → handover/results/2.json
2 done
`
	partly = `◆ tools     count_stock
○ user      Where do we have the most bolts?
● assistant [1 call waits] I let somebody count. → count_stock ×3
├─┬─╮
▪ │ │ (head 1) count_stock(city: "Lima") → 1,200 bolts
  ▪ │ (head 2) count_stock(city: "Oslo") → 4,700 bolts
    ▪ (head 3) count_stock(city: "Rome") → awaiting tool results

waiting for handover/tasks/3.json
`
	workedOn = `handover/tasks/3.json → handover/results/3.json
1 done
`
	answered = `◆ tools     count_stock
○ user      Where do we have the most bolts?
● assistant I let somebody count. → count_stock ×3
├─┬─╮
▪ │ │ count_stock(city: "Lima") → 1,200 bolts
│ ▪ │ count_stock(city: "Oslo") → 4,700 bolts
│ │ ▪ count_stock ✗ there is no warehouse in Rome (city: "Rome")
├─┴─╯
◇ results   3, 1 failed
● assistant Lima has 1,200 bolts, Oslo 4,700 bolts; in Rome there is no warehouse in Rome.
■ stop      end_turn · 2 turns · 3 tool calls

Answer: Lima has 1,200 bolts, Oslo 4,700 bolts; in Rome there is no warehouse in Rome.
`
)

// Every step is a process of its own, and most are run twice.
func TestTwoProcesses(t *testing.T) {
	dir := t.TempDir()
	if _, err := process(dir, "resume"); err == nil {
		t.Error("there is nothing to resume")
	}
	step(t, dir, asked, "ask")
	step(t, dir, asked, "ask")
	step(t, dir, asked, "resume")
	step(t, dir, worked, "work", "2")
	step(t, dir, "0 done\n", "work", "0")
	step(t, dir, partly, "resume")
	step(t, dir, partly, "resume")
	step(t, dir, workedOn, "work")
	step(t, dir, "0 done\n", "work")
	step(t, dir, answered, "resume")
	step(t, dir, answered, "resume")
	step(t, dir, answered, "ask")

	d, err := dag.Load(filepath.Join(dir, conversation))
	if err != nil || len(d.Validate()) > 0 || d.Len() != 10 {
		t.Errorf("%v %v\n%v", err, d.Validate(), d)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "handover", "*", "*.tmp")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func move(t *testing.T, from, to string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// The worker sits in another place, and gets the tasks alone. One that it cannot read does not keep it from the others.
func TestTheWorkerKnowsOnlyTheTasks(t *testing.T) {
	here, there := t.TempDir(), t.TempDir()
	step(t, here, asked, "ask")
	move(t, filepath.Join(here, tasks), filepath.Join(there, tasks))
	if err := os.MkdirAll(filepath.Join(there, results), 0o777); err != nil {
		t.Fatal(err)
	}
	step(t, there, worked, "work", "2")
	bad := filepath.Join(there, tasks, "0.json")
	if err := os.WriteFile(bad, []byte(`{"schema_version":3}`), 0o666); err != nil {
		t.Fatal(err)
	}
	if out, err := process(there, "work"); err == nil || !strings.Contains(out, "has version 3") || !strings.Contains(out, "1 done") {
		t.Errorf("%v\n%s", err, out)
	}
	if err := os.RemoveAll(filepath.Join(here, results)); err != nil {
		t.Fatal(err)
	}
	move(t, filepath.Join(there, results), filepath.Join(here, results))
	step(t, here, answered, "resume")
}

// A step that was killed halfway has saved the conversation, and not what lies beside it.
func TestAStepThatWasKilledIsRunAgain(t *testing.T) {
	dir := t.TempDir()
	step(t, dir, asked, "ask")
	for _, folder := range []string{tasks, results} { // killed before anything but the conversation was written
		if err := os.RemoveAll(filepath.Join(dir, folder)); err != nil {
			t.Fatal(err)
		}
	}
	step(t, dir, asked, "resume") // the tasks are made again from the conversation
	step(t, dir, worked, "work", "2")
	step(t, dir, partly, "resume")
	step(t, dir, partly, "resume") // the same results again
	step(t, dir, workedOn, "work")
	step(t, dir, answered, "resume")
}

func TestAResultThatCannotBeReadIsAnError(t *testing.T) {
	dir := t.TempDir()
	step(t, dir, asked, "ask")
	step(t, dir, worked, "work", "2")
	files, err := filepath.Glob(filepath.Join(dir, results, "*.json"))
	if err != nil || len(files) != 2 {
		t.Fatal(files, err)
	}
	good, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"", "{", `{"approve":true}`, `{"result":7}`} {
		if err := os.WriteFile(files[0], []byte(bad), 0o666); err != nil {
			t.Fatal(err)
		}
		if out, err := process(dir, "resume"); err == nil || strings.Contains(out, "Answer") {
			t.Errorf("with %q: %v\n%s", bad, err, out)
		}
	}
	if err := os.WriteFile(files[0], good, 0o666); err != nil {
		t.Fatal(err)
	}
	step(t, dir, partly, "resume")
}

func TestTheCommandLine(t *testing.T) {
	for _, args := range []string{"", "steal", "work x", "resume"} {
		if _, err := process(t.TempDir(), strings.Fields(args)...); err == nil {
			t.Errorf("deferred %s is no error", args)
		}
	}
}
