package dag

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/node"
)

// TestPythonReaderFindsEveryChecksumRight checks the specification of the saved form against files that Plait writes: the
// reader beside it was written from its text, and shares no code with Plait.
func TestPythonReaderFindsEveryChecksumRight(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		require.Empty(t, os.Getenv("PLAIT_PYTHON"), "PLAIT_PYTHON is set, but python3 is missing")
		t.Skip("SKIPPED: python3 is not installed, which runs docs/saved-form/read.py")
	}
	read := func(files ...string) (string, error) {
		out, err := exec.Command(python, append([]string{"../docs/saved-form/read.py"}, files...)...).CombinedOutput()
		return string(out), err
	}

	files := savedForms(t)
	out, err := read(files...)
	require.NoError(t, err, out)
	require.NotContains(t, out, "WRONG")
	require.Greater(t, strings.Count(out, " ok"), 400)

	// A reader that finds everything right would pass as well.
	text, err := os.ReadFile(files[0])
	require.NoError(t, err)
	changed := filepath.Join(t.TempDir(), "changed.json")
	require.NoError(t, os.WriteFile(changed, []byte(strings.Replace(string(text), "Be brief.", "Be long.", 1)), 0o600))
	out, err = read(changed)
	require.Error(t, err)
	require.Equal(t, 1, strings.Count(out, "WRONG"), out)
}

// TestSchemaAcceptsWhatIsSaved validates the same files with docs/saved-form/schema.json, and broken ones.
func TestSchemaAcceptsWhatIsSaved(t *testing.T) {
	text, err := os.ReadFile("../docs/saved-form/schema.json")
	require.NoError(t, err)
	var s jsonschema.Schema
	require.NoError(t, json.Unmarshal(text, &s))
	schema, err := s.Resolve(nil)
	require.NoError(t, err)

	files := savedForms(t)
	for _, file := range files {
		require.NoError(t, schema.Validate(document(t, file, "", "")), file)
	}
	for old, broken := range map[string]string{
		`"format":"plait"`:   `"format":"plaid"`,
		`"version":1`:        `"version":"1"`,
		`"role":"user"`:      `"role":"robot"`,
		`"kind":"system"`:    `"kind":""`,
		`"result_of":0`:      `"result_of":-1`,
		`"text":"Be brief."`: `"text":7`,
		`"sum":"sha256:`:     `"sum":"md5:`,
	} {
		require.Error(t, schema.Validate(document(t, files[0], old, broken)), broken)
	}

	pause := filepath.Join(t.TempDir(), "pause.json")
	require.NoError(t, pausedForm(t).Save(pause))
	for old, broken := range map[string]string{
		`"state":"awaiting_approval"`: `"state":"approved"`,
		`"note":"it pays"`:            `"note":7`,
		`"deferred":true`:             `"deferred":"yes"`,
		`"decided":{"by":"ann"`:       `"decided":{"by":7`,
		`"turns":1`:                   `"turns":-1`,
	} {
		require.Error(t, schema.Validate(document(t, pause, old, broken)), broken)
	}
}

// tooLarge matches a number, and no part of a checksum.
var tooLarge = regexp.MustCompile(`\b1e400\b`)

// document reads a file as JSON, with one text replaced.
func document(t *testing.T, file, old, replacement string) any {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(text), old)
	changed := strings.Replace(string(text), old, replacement, 1)
	changed = tooLarge.ReplaceAllString(changed, "1e40") // the validator reads numbers as float64

	var v any
	require.NoError(t, json.Unmarshal([]byte(changed), &v))
	return v
}

// pausedForm returns a conversation with a pause that sets every member of one.
func pausedForm(t *testing.T) DAG {
	t.Helper()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	use := func(id string) content.ToolUse { return content.ToolUse{ID: id, Name: "pay", Input: `{"n":1}`} }
	d := New().User("Pay.").Assistant("", use("a"), use("b")).AppendExecutions(
		node.ToolExecution{
			Index: 0, State: node.ExecutionAwaitingApproval, Ran: node.Ran{Input: `{"n":2}`}, Note: "it pays", Deferred: true,
			Decided: node.Decided{By: "ann", At: at, Rule: "always"},
			Spent: node.Spent{
				Run: "run_1", Turns: 1, Calls: 2, InnerTurns: 3, InnerCalls: 4, Usage: content.Usage{Input: 5},
				ToolUsage: content.Usage{Output: 6}, Elapsed: time.Second, Cost: 0.5,
			},
		},
		node.ToolExecution{Index: 1, State: node.ExecutionAwaitingResults, Started: at},
	)
	require.NoError(t, d.Err())
	return d
}

// savedForms returns the golden file, one with hostile texts, and random conversations.
func savedForms(t *testing.T) []string {
	t.Helper()
	files := []string{"testdata/conversation.v1.json"}
	save := func(d DAG) {
		path := filepath.Join(t.TempDir(), "conversation.json")
		require.NoError(t, d.Save(path))
		files = append(files, path)
	}

	save(hostileToReaders())
	save(pausedForm(t))
	save(ownWords(t))
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 0))
		pool := []DAG{New().User("Hello")}
		for range 60 {
			pool = append(pool, randomStep(r, pool[r.IntN(len(pool))], pool))
		}
		save(pool[0].Join(pool[1:]...))
	}
	return files
}

// hostileToReaders has what readers in other languages get wrong: escapes, the order of names, numbers, JSON that is
// none, calls of one ID, and results of no call.
func hostileToReaders() DAG {
	deep := strings.Repeat("[", 300) + strings.Repeat("]", 300)
	d := New().System("\x00\x1f\x7f\u2028 \"\\/<>& \U0001F600 \ufffd").
		Custom("numbers", content.JSON(`{"b":1.0,"a":1e400,"c":-0,"d":123456789012345678901234567890}`)).
		Custom("names", content.JSON(`{"\ue000":1,"\ud83d\ude00":2,"":3,"a\u0062":4,"\n":5}`))
	for i, input := range []string{"{\n \"b\": [ ],\t\"a\": {} }", `{"a":1,"a":2}`, "NaN", `"\ud800"`, deep, "{", " {} ", "[1,]"} {
		use := func(id string) content.ToolUse { return content.ToolUse{ID: id, Name: "f", Input: content.JSON(input)} }
		result := func(id string) content.ToolResult {
			return content.ToolResult{CallID: id, Content: content.Words(fmt.Sprint(i, id)), IsError: id == "x"}
		}
		d = d.Assistant("", use("x"), use("y"), use("x"), use("")).
			ToolResults(result("x"), result("x"), result("y"), result("x"), result("none"), result(""))
	}
	return d.User("Bye.")
}
