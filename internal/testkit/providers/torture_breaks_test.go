package providers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/pattern"
)

// breaks are mistakes in the product, one for each invariant of TestTorture.
var breaks = []struct{ name, file, from, to string }{
	{"1: stale thinking is sent", "dag/seen.go", "t.Stale = true", "t.Stale = false"},
	{"2: a queue gives away messages that move", "executor/run_queue.go", "slices.Clone(q.waiting[:n])", "q.waiting[:n]"},
	{"3: a call of unknown effect is executed again", "executor/phase_doubt.go", "c.effect != EffectUnknown ||", "c.effect >= EffectUnknown ||"},
	{"4: a call with a result gets another one", "dag/phase.go", "if p.Done(i) == nil {\n\t\t\tif err :=", "if p.Done(i) == nil || i == 1 {\n\t\t\tif err :="},
	{"5: a store turns the order of heads", "store/conversation.go", "ids = append(ids, h.ID())", "ids = append([]node.ID{h.ID()}, ids...)"},
	{"6: what holds erased text is not noticed", "dag/nodeset.go", "n != erased &&", "n == erased &&"},
	{"7: a single new tool is not declared", "dag/dag.go", "; return !has })", "; return !has || len(index) == 1 })"},
	{"8: transcripts share their messages", "dag/lineage.go", "slices.Clone(p.t.Messages[:m.messages])", "p.t.Messages[:m.messages]"},
	{"9: going back too far goes back", "dag/dag.go", `return d.fail("Back"`, `return d.without(removed).fail("Back"`},
	{"10: a journal forgets a rewind", "dag/journal.go", "if len(lines) > 0 {", "if len(fresh) > 0 {"},
}

// TestTortureFindsBreaks makes each of the mistakes in a copy of its file, and requires that 10,000 programs find it.
func TestTortureFindsBreaks(t *testing.T) {
	if os.Getenv("PLAIT_BREAKS") == "" {
		t.Skip("SKIPPED: PLAIT_BREAKS=1 builds this package ten times")
	}
	root, err := filepath.Abs("../../..")
	require.NoError(t, err)
	for _, b := range breaks {
		t.Run(b.name, func(t *testing.T) {
			dir, path := t.TempDir(), filepath.Join(root, b.file)
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, 1, strings.Count(string(text), b.from), b.from)
			broken := filepath.Join(dir, "broken.go")
			require.NoError(t, os.WriteFile(broken, []byte(strings.Replace(string(text), b.from, b.to, 1)), 0o600))

			overlay := filepath.Join(dir, "overlay.json")
			require.NoError(t, os.WriteFile(overlay, fmt.Appendf(nil, `{"Replace":{%q:%q}}`, path, broken), 0o600))
			cmd := exec.Command("go", "test", "-overlay", overlay, "-run", "^TestTorture$", "-v", ".",
				"-programs", "10000", "-keep", filepath.Join(dir, "kept"))
			out, err := cmd.CombinedOutput()
			found := aBreak().FindString(string(out))
			require.True(t, err != nil && found != "", "%s", out)
			t.Log(found, invariantOf(string(out)))
		})
	}
}

var aBreak = pattern.Of(`program \d+ of PLAIT_SEED=\d+`)
