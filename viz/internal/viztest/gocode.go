package viztest

import (
	"encoding/json"
	"fmt"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// RequireGoCode compiles and runs Go code with a function Conversation, and requires that it makes the expected
// conversation. code maps the file of each expected conversation to the code. The code must be formatted as by gofmt.
func RequireGoCode(t testing.TB, code map[string]string) {
	t.Helper()
	const folder = "viz/page/internal/gocode/testdata/run" // it does not exist: the compiler sees files of an overlay there
	root, temp := checkout(t), t.TempDir()
	replace := map[string]string{}
	add := func(path, text string) {
		file := filepath.Join(temp, fmt.Sprintf("%d.go", len(replace)))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		replace[filepath.Join(root, folder, path)] = file
	}

	var imports, calls strings.Builder
	i := 0
	for saved, text := range code {
		pretty, err := format.Source([]byte(text))
		require.NoError(t, err, text)
		require.Equal(t, string(pretty), text, "gofmt would change it")

		name := fmt.Sprintf("case%d", i)
		add(name+"/fixture.go", text)
		fmt.Fprintf(&imports, "\t%s %q\n", name, "github.com/plait-dev/plait/"+folder+"/"+name)
		fmt.Fprintf(&calls, "\tcheck(%q, %s.Conversation())\n", saved, name)
		i++
	}
	add("main.go", `package main

import (
	"fmt"
	"os"
	"github.com/plait-dev/plait/dag"
`+imports.String()+`)

func main() {
`+calls.String()+`}

func check(path string, got dag.DAG) {
	want, err := dag.Load(path)
	if err != nil || got.Err() != nil || !dag.Equal(want, got) {
		fmt.Println(path, "differs:", err, got.Err())
		os.Exit(1)
	}
}
`)

	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(t, err)
	list := filepath.Join(temp, "overlay.json")
	require.NoError(t, os.WriteFile(list, overlay, 0o600))
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("SKIPPED: there is no go command, which compiles the generated code") // "go test" always brings one
	}
	cmd := exec.Command("go", "run", "-overlay", list, "./"+folder)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Empty(t, string(out))
}
