package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/internal/testkit/goldentest"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
	"github.com/plait-dev/plait/store/sqlite"
)

// weatherRun returns a run that asks for the weather. The tool call fails with why, unless that is "".
func weatherRun(i int, why string) dag.DAG {
	at := time.Date(2026, 11, 1, 10, 0, i, 0, time.UTC)
	answer := func(stop content.Stop, text string, calls ...content.ToolUse) node.Message {
		blocks := []content.Block{content.Text{Text: text}}
		for _, c := range calls {
			blocks = append(blocks, c)
		}
		list, err := content.Of(blocks...)
		if err != nil {
			panic(err)
		}
		return node.Message{Role: content.Assistant, Blocks: list, Answer: node.Answer{
			Model: []string{"claude-test", "mystery"}[i%2], Stop: stop, Latency: time.Second, Usage: content.Usage{Input: 1000, Output: 50},
		}}
	}

	call := node.ToolExecution{Index: 1, Result: content.Words("18 °C"), Started: at, Ended: at.Add(time.Duration(i+1) * 100 * time.Millisecond)}
	if why != "" {
		call.Result, call.IsError = content.Words(why+"\nand more"), true
	}
	d := dag.New().WithSource(node.Counting(at)).WithMetadata("variant", []string{"short", "long"}[i%2]).
		Tools(content.Tool{Name: "get_weather", Schema: `{"type":"object"}`}).User("Weather in Paris?").
		Append(answer(content.StopToolUse, "I look.", use("call_1", "Paris"))).CloseTools(call)
	if why != "" {
		return d.Stop(content.StopError)
	}
	return d.Append(answer(content.StopEndTurn, fmt.Sprintf("It is 18 °C in Paris, says source %d.", i))).Stop(content.StopEndTurn)
}

// runsFolder returns a folder with eight runs, of which two fail in one way and one in another, a journal, a broken
// file, and files that plait report does not read.
func runsFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	save := func(name string, d dag.DAG) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, d.Save(filepath.Join(dir, name)))
	}
	for i := range 5 {
		save(fmt.Sprintf("run-%d.json", i), weatherRun(i, ""))
	}
	save("run-5.json", weatherRun(5, "connection refused: 10.0.0.5:40005"))
	save("run-6.json", weatherRun(6, "connection refused: 10.0.0.6:40006"))
	save("deeper/run-7.json", weatherRun(7, "no such city"))
	save(".hidden/run-8.json", weatherRun(8, ""))

	journal, err := dag.OpenJournal(filepath.Join(dir, "run-9.jsonl"), nil)
	require.NoError(t, err)
	require.NoError(t, journal.Append(dag.New().WithSource(node.Counting(time.Date(2026, 11, 1, 10, 0, 9, 0, time.UTC))).User("Weather?")))
	require.NoError(t, journal.Close())

	require.NoError(t, os.WriteFile(filepath.Join(dir, "torn.json"), []byte(`{"format":"plait"`), 0o600))
	socket, err := net.Listen("unix", filepath.Join(dir, "s.json"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = socket.Close() })
	require.NoError(t, os.WriteFile(filepath.Join(dir, "notes.txt"), []byte(`notes`), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".prices"), []byte(`{"date":"2026-11-01","currency":"USD","models":{"claude-test":{"input":3,"output":20}}}`), 0o600))
	return dir
}

// reported returns what plait report prints about the folder, which is the working directory meanwhile.
func reported(t *testing.T, dir string, code int, args ...string) string {
	t.Helper()
	here, err := os.Getwd()
	require.NoError(t, err)
	t.Chdir(dir)
	out, errs, got := command("", append([]string{"report", "."}, args...)...)
	t.Chdir(here)
	require.Equal(t, code, got, errs)
	return out
}

func TestReportFitsATerminalOf80Columns(t *testing.T) {
	dir := runsFolder(t)
	text := reported(t, dir, exitBad, "--prices", ".prices")
	for line := range strings.Lines(text) {
		require.LessOrEqual(t, safetext.Width(strings.TrimSuffix(line, "\n")), 80, line)
	}
	goldentest.Require(t, "report.txt", text)
}

func TestReportGroupsByMetadata(t *testing.T) {
	dir := runsFolder(t)
	goldentest.Require(t, "report_by.txt", reported(t, dir, exitBad, "--by", "variant"))
}

func TestRunThatFailedDifferentlyIsNamedAmongTwoHundred(t *testing.T) {
	dir := t.TempDir()
	for i := range 200 {
		// Every run goes on after a first failure, so that this one says nothing.
		d := dag.New().User("Weather?").Assistant("", use("call_1", "Paris")).
			CloseTools(node.ToolExecution{Result: content.Words("rate limited"), IsError: true})
		d = d.Assistant("", use("call_2", "Paris")).CloseTools(node.ToolExecution{Result: content.Words("18 °C")}).Assistant("18 °C.")
		switch {
		case i == 137:
			d = d.Append(node.StopReason{Reason: content.StopError, Detail: "disk quota exceeded"})
		case i%10 == 3:
			d = d.Append(node.StopReason{Reason: content.StopError, Detail: fmt.Sprintf("connection refused: 10.0.0.%d:4%04d", i, i)})
		}
		require.NoError(t, d.Err())
		require.NoError(t, d.Save(filepath.Join(dir, fmt.Sprintf("run-%03d.json", i))))
	}

	text := reported(t, dir, exitDone)
	require.Contains(t, text, "\ncount  cause\n"+
		"   20  the run ended: error: connection refused: #:#\n       run-003.json and 19 more\n"+
		"    1  the run ended: error: disk quota exceeded\n       run-137.json\n")
	one := reported(t, dir, exitDone, "--where", "cause=the run ended: error: disk quota exceeded")
	require.Contains(t, one, "run-137.json\n")
	require.Contains(t, one, "\n1 conversation: ")
}

func TestReportFiltersAndSorts(t *testing.T) {
	dir := runsFolder(t)
	names := func(args ...string) (list []string) {
		t.Helper()
		var found struct {
			Rows []struct{ Name string }
		}
		require.NoError(t, json.Unmarshal([]byte(reported(t, dir, exitBad, append(args, "--json")...)), &found))
		for _, r := range found.Rows {
			list = append(list, r.Name)
		}
		return list
	}
	require.Equal(t, []string{"deeper/run-7.json", "run-5.json", "run-6.json"}, names("--where", "outcome=failed"))
	require.Equal(t, []string{"run-5.json", "run-6.json"}, names("--where", "path=2"))
	require.Equal(t, []string{"run-4.json", "run-3.json"}, names("--where", "outcome=ended", "--sort", "-time", "-n", "2"))
	require.Equal(t, []string{"torn.json"}, names("--where", "outcome=unreadable"))
	require.Empty(t, names("--where", "variant=none"))
	require.Empty(t, names("--where", "variant=none", "--where", "variant!=long", "--sort", "-variant", "--by", "variant"))

	for _, args := range [][]string{{"--where", "varient=long"}, {"--sort", "costs"}, {"--by", "varient"}, {"--as", "xml"}, {"-n", "-1"}} {
		_, errs, code := command("", append([]string{"report", dir}, args...)...)
		require.Equal(t, exitBad, code)
		require.Contains(t, errs, args[0])
	}
}

func TestReportReadsDatabasesAndStandardInput(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sessions.db")
	db, err := sqlite.Open(t.Context(), file, nil)
	require.NoError(t, err)
	for i, key := range []string{"alice/1", "bob"} {
		c, err := store.New(db).Conversation(t.Context(), key)
		require.NoError(t, err)
		require.NoError(t, c.Append(t.Context(), weatherRun(i, "")))
		_, err = c.Fork(t.Context(), "left")
		require.NoError(t, err)
	}
	require.NoError(t, db.Close())

	var saved strings.Builder
	require.NoError(t, weatherRun(3, "").Write(&saved))
	out, errs, code := command(saved.String(), "report", file, file+"#bob", "-", "--json")
	require.Equal(t, exitDone, code, errs)
	var found struct {
		Rows []struct{ Name, Outcome string }
	}
	require.NoError(t, json.Unmarshal([]byte(out), &found))
	var names []string
	for _, r := range found.Rows {
		names = append(names, strings.TrimPrefix(r.Name, file))
		require.Equal(t, "ended", r.Outcome)
	}
	require.Equal(t, []string{"#alice/1#left", "#alice/1", "#bob#left", "#bob", "#bob", "-"}, names)
}

func TestReportOnAFolderReadsNothingThatHasNoEnd(t *testing.T) {
	dir := t.TempDir()
	runs := filepath.Join(dir, "runs")
	require.NoError(t, os.MkdirAll(filepath.Join(runs, "folder.json"), 0o755))
	require.NoError(t, weatherRun(0, "").Save(filepath.Join(runs, "a.json")))
	for link, target := range map[string]string{
		"endless.json": os.DevNull, "loop": runs, "loop.json": runs, "self.json": "self.json", "linked.json": "a.json", "gone.json": "nowhere.json",
	} {
		if err := os.Symlink(target, filepath.Join(runs, link)); err != nil {
			t.Skip("SKIPPED: no symbolic links here: ", err)
		}
	}
	socket, err := net.Listen("unix", filepath.Join(dir, "s"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = socket.Close() })
	require.NoError(t, os.Symlink(filepath.Join(dir, "s"), filepath.Join(runs, "socket.json")))
	require.NoError(t, os.Symlink(runs, filepath.Join(dir, "link")))

	out, _, code := command("", "report", filepath.Join(dir, "link"), "--json")
	require.Equal(t, exitBad, code)
	var found struct {
		Rows []struct{ Name, Outcome string }
	}
	require.NoError(t, json.Unmarshal([]byte(out), &found))
	outcomes := map[string]string{}
	for _, row := range found.Rows {
		outcomes[filepath.Base(row.Name)] = row.Outcome
	}
	require.Equal(t, map[string]string{"a.json": "ended", "linked.json": "ended", "self.json": "unreadable", "gone.json": "unreadable"}, outcomes)
}

func TestReportReadsAFolderWhoseFilesGrowOrAreBroken(t *testing.T) {
	dir := t.TempDir()
	for i := range 40 {
		require.NoError(t, weatherRun(i, "").Save(filepath.Join(dir, fmt.Sprintf("run-%02d.json", i))))
	}
	whole, err := os.ReadFile(filepath.Join(dir, "run-20.json"))
	require.NoError(t, err)
	for name, text := range map[string]string{
		"zero.json": "", "nul.json": strings.Repeat("\x00", 1<<20), "list.json": "[]", "other.json": `{"a":1}`, "run-20.json": string(whole[:len(whole)/2]),
		"bad.db": "SQLite format 3\x00 and no more", "deep.json": strings.Repeat("[", 1<<20),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}

	// A journal whose last line is being written.
	path := filepath.Join(dir, "growing.jsonl")
	journal, err := dag.OpenJournal(path, nil)
	require.NoError(t, err)
	require.NoError(t, journal.Append(weatherRun(0, "")))
	t.Cleanup(func() { _ = journal.Close() })
	line := weatherRun(1, "").User("And now?").Head().Append(nil)
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = file.Write(line[:len(line)/2])
	require.NoError(t, errors.Join(err, file.Close()))

	var found struct {
		Rows  []struct{ Name, Outcome, Error string }
		Total struct{ Outcomes map[string]int }
	}
	require.NoError(t, json.Unmarshal([]byte(reported(t, dir, exitBad, "--json")), &found))
	require.Equal(t, map[string]int{"ended": 40, "unreadable": 7}, found.Total.Outcomes)
	for _, r := range found.Rows {
		require.Equal(t, r.Outcome == "unreadable", r.Error != "", r.Name)
		require.Less(t, len(r.Error), 400, r.Name)
	}
}

func TestReportOnAnEmptyFolder(t *testing.T) {
	dir := t.TempDir()
	require.Contains(t, reported(t, dir, exitDone), "0 conversations")
	require.Contains(t, reported(t, dir, exitDone, "--json"), `"rows": []`)
	require.Contains(t, reported(t, dir, exitDone, "--as", "html"), "<!doctype html>")
}

func TestReportOnAStoreWithAHugeConversation(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "sessions.db")
	db, err := sqlite.Open(t.Context(), file, nil)
	require.NoError(t, err)
	huge := dag.New()
	for i := range 1500 {
		huge = huge.User(fmt.Sprint(i, strings.Repeat(" 文", 500))).Assistant("So.")
	}
	for key, d := range map[string]dag.DAG{"huge": huge.User(strings.Repeat("x", 8<<20)), "small": weatherRun(0, "")} {
		c, err := store.New(db).Conversation(t.Context(), key)
		require.NoError(t, err)
		require.NoError(t, c.Append(t.Context(), d))
	}
	require.NoError(t, db.Close())

	for form, limit := range map[string]int{"text": 4_000, "json": 20_000, "html": 1 << 20} {
		out, errs, code := command("", "report", file, "--as", form)
		require.Equal(t, exitDone, code, errs)
		require.Less(t, len(out), limit, form)
		require.Contains(t, out, "huge")
	}
}

func TestReportKeepsHostileTextsHarmless(t *testing.T) {
	const hostile = "=cmd|' /C calc'!A0 \x1b[2J\u202e\r\n<script>"
	dir := t.TempDir()
	d := dag.New().WithMetadata("=key\x1b[2J", hostile).User(hostile).Assistant(hostile, content.ToolUse{ID: "1", Name: hostile, Input: `{}`}).
		CloseTools(node.ToolExecution{Index: 1, Result: content.Words(hostile), IsError: true}).Assistant(hostile).Stop(content.Stop(hostile))
	require.NoError(t, d.Err())
	require.NoError(t, d.Save(filepath.Join(dir, "a\x1b[2J.json")))
	require.NoError(t, d.Back(0).User("more").Save(filepath.Join(dir, "b.json")))

	for _, args := range [][]string{{}, {"--by", "=key\x1b[2J"}, {"--by", "failure"}} {
		out := reported(t, dir, exitDone, args...)
		require.NotContains(t, out, "\x1b", args)
		require.NotContains(t, out, "\u202e", args)
		require.NotContains(t, out, "\r", args)
	}
}

func TestReportNamesEachUnreadFileThatHasNoRow(t *testing.T) {
	dir := t.TempDir()
	for i := range 2 {
		require.NoError(t, weatherRun(i, "").Save(filepath.Join(dir, fmt.Sprintf("run-%d.json", i))))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "torn.json"), []byte(`{"format":"plait"`), 0o600))

	for _, args := range [][]string{{"--by", "model"}, {"--where", "outcome=ended"}} {
		out, errs, code := command("", append([]string{"report", dir}, args...)...)
		require.Equal(t, exitBad, code, args)
		require.NotContains(t, out, "torn.json", args)
		require.Regexp(t, `torn\.json: .*it ends early`, errs, args)
	}
	_, errs, code := command("", "report", dir)
	require.Equal(t, exitBad, code)
	require.Empty(t, errs, "it has a row")
}

func TestSharesAreRoundedDown(t *testing.T) {
	require.Equal(t, []string{"<1%", "1%", "29%", "57%", "99%", "100%"},
		[]string{percent(1, 101), percent(1, 100), percent(29, 100), percent(57, 100), percent(999, 1000), percent(3, 3)})
}
