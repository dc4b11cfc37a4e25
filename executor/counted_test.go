package executor_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/testkit/seedtest"
)

// corePackages are the executor and the packages that take code from it.
var corePackages = []string{"executor", "internal/lineage", "internal/shared", "internal/schema"}

// maxPassed is how many functions of ours a streamed run with two tool calls may pass, from Stream to End: making the tool
// is no part of it. Of these, maxCore are neither a tool's own nor questions to the graph. Make both smaller with the
// numbers.
const (
	maxPassed = 80
	maxCore   = 51
)

// isCore reports whether a function in the file is neither a tool's own nor a question to the graph.
func isCore(file string) bool {
	return !strings.HasPrefix(file, "internal/") && !strings.HasPrefix(file, "executor/tool")
}

// TestFunctionsOfARunAreFew counts the functions that a reader of a streamed run with two tool calls has to know.
func TestFunctionsOfARunAreFew(t *testing.T) {
	if os.Getenv("PLAIT_COUNT") == "" && !seedtest.Long() {
		t.Skip("SKIPPED: PLAIT_COUNT=1 builds a program, and counts the functions that its run passes")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "counted")
	run := func(name string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Env = append(os.Environ(), "GOCOVERDIR="+dir)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}

	const module = "github.com/plait-dev/plait/"
	// Without the main package among those that are covered, nothing is written.
	const counted = "internal/testkit/counted"
	packages := module + strings.Join(append(corePackages, counted), ","+module)
	run("go", "build", "-cover", "-covermode=atomic", "-coverpkg="+packages, "-o", program, "../"+counted)
	run(program, "run")

	// A line is: file:line:, function, percent.
	byPackage := map[string]int{}
	var passed []string
	core := 0
	for line := range strings.Lines(run("go", "tool", "covdata", "func", "-i="+dir)) {
		fields := strings.Fields(line)
		if len(fields) == 3 && strings.HasPrefix(line, module) && fields[2] != "0.0%" {
			file := strings.TrimPrefix(fields[0], module)
			if strings.HasPrefix(file, counted) {
				continue
			}
			byPackage[filepath.Dir(file)]++
			if isCore(file) {
				core++
			}
			passed = append(passed, fields[1])
		}
	}
	slices.Sort(passed)
	t.Logf("%d functions, %d of the core: %v\n%s", len(passed), core, byPackage, strings.Join(passed, " "))
	require.NotEmpty(t, passed)
	require.LessOrEqual(t, len(passed), maxPassed)
	require.LessOrEqual(t, core, maxCore)
}
