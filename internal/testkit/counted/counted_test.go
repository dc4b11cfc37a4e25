package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/testkit/seedtest"
)

// most is how many functions of ours each thing may pass, in all packages of the root module. Make it smaller with the
// number.
var most = map[string]int{"run": 247, "save": 108, "draw": 319, "resume": 386}

// TestFunctionsThatAReaderHasToKnow counts the functions that a run with two tool calls, a message saved in a journal,
// the drawing of a loaded conversation, and the resuming of a loaded pause pass.
func TestFunctionsThatAReaderHasToKnow(t *testing.T) {
	if os.Getenv("PLAIT_COUNT") == "" && !seedtest.Long() {
		t.Skip("SKIPPED: PLAIT_COUNT=1 builds a program, and counts the functions that it passes")
	}
	const module = "github.com/plait-dev/plait/"
	program := filepath.Join(t.TempDir(), "counted")
	call := func(env, name string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Env = append(os.Environ(), env)
		out, err := cmd.Output()
		require.NoError(t, err)
		return string(out)
	}
	call("", "go", "build", "-cover", "-covermode=atomic", "-coverpkg="+module+"...", "-o", program, ".")

	for what, limit := range most {
		folder := t.TempDir()
		call("GOCOVERDIR="+folder, program, what)

		// A line is: file:line:, function, percent.
		passed := 0
		for line := range strings.Lines(call("", "go", "tool", "covdata", "func", "-i="+folder)) {
			fields := strings.Fields(line)
			file := strings.TrimPrefix(fields[0], module)
			own := len(fields) == 3 && file != fields[0] && fields[2] != "0.0%"
			if own && !strings.HasPrefix(file, "internal/testkit/") && !strings.HasPrefix(file, "api/apitest/") {
				passed++
			}
		}
		t.Logf("%s: %d functions", what, passed)
		require.NotZero(t, passed)
		require.LessOrEqual(t, passed, limit, what)
	}
}
