package describe

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/node"
)

func TestMostTellingLineIsTheErrorItself(t *testing.T) {
	for want, text := range map[string]string{
		"--- FAIL: TestCompaction (0.31s)":       "exit status 1\n--- FAIL: TestCompaction (0.31s)\n    dag_test.go:12: got 3, want 4\nFAIL\n",
		"no such host":                           "no such host",
		"the first of two":                       "\n\nthe first of two\nthe second",
		"ValueError: no such file":               "Traceback (most recent call last):\n  File \"x.py\", line 1\n    f()\nValueError: no such file\n",
		"KeyError: 'b'":                          "Traceback (most recent call last):\n  File \"x\"\nTypeError: a\n\nDuring handling\n\nTraceback (most recent call last):\n  File \"y\"\nKeyError: 'b'",
		"E       assert 1 == 2":                  "============ test session starts ===\ncollected 3 items\ntest_x.py F\n    def test():\nE       assert 1 == 2\n",
		"./x.go:3:2: undefined: foo":             "# example.com/x\n./x.go:3:2: undefined: foo\n",
		"main.c:3:1: error: expected ‘;’":        "make: Entering directory\nmain.c: In function ‘main’:\nmain.c:3:1: error: expected ‘;’\nmake: *** [all] Error 1",
		"panic: index out of range":              "exit status 2\ngoroutine 1 [running]:\npanic: index out of range\n",
		"src/a.ts(3,1): error TS2304: no name x": "> tsc\nsrc/a.ts(3,1): error TS2304: no name x",
		"error: failed to push some refs":        "To example.org:x\n ! [rejected] main\nerror: failed to push some refs",
		"\"message\": \"rate limited\"":          "{\n  \"message\": \"rate limited\"\n}",
		"exit status 1":                          "exit status 1",
		"sh: 1: jq: not found":                   "Exit code 127\nsh: 1: jq: not found",
		"fatal: not a git repository":            strings.Repeat("progress\n", 10_000) + "fatal: not a git repository\n",
		"שגיאה: הקובץ לא נמצא":                   "exit status 1\nשגיאה: הקובץ לא נמצא",
		"":                                       " \n\t\n",
	} {
		got, rest := Telling(text)
		require.Equal(t, want, got)
		require.True(t, strings.HasSuffix(strings.TrimSpace(text), strings.TrimSpace(rest)), "the text after it")
	}
}

func TestReasonTellsWhetherThereIsMore(t *testing.T) {
	failed := func(text string) Node {
		n, err := node.New(node.Source{}, node.ToolExecution{Tool: "bash", Result: content.Words(text), IsError: true}, node.Meta{})
		require.NoError(t, err)
		return Of(n)
	}
	line, more := failed("exit status 1\nerror: x\n").Reason()
	require.Equal(t, "error: x", line)
	require.True(t, more)
	line, more = failed("error: x\n").Reason()
	require.Equal(t, "error: x", line)
	require.False(t, more)
}
