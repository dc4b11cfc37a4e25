package plait_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// renderer matches a function of package viz that writes a drawing.
var renderer = regexp.MustCompile(`(?m)^func ([A-Z]\w*)\(w io\.Writer, d dag\.DAG, o \*\w+\) error`)

// rendererPlaces are the places that a renderer has to be in: files, and a text that one of them has. In both, NAME
// stands for the name of the function, and name for the same in small letters.
var rendererPlaces = []struct{ files, text, why string }{
	{"viz/name*_test.go", `hostileTexts\(|everywhere\(`, "hostile text is escaped"},
	{"viz/zero_test.go", `viz\.NAME\(w, d, nil\)`, "nil options are the zero value"},
	{"viz/growth_test.go", `viz\.NAME\(`, "its cost grows linearly"},
	{"viz/example_test.go", `func ExampleNAME\(`, "it has an example"},
	{"cmd/plait/look.go", `case "name":`, "plait render draws it"},
	{"cmd/plait/testdata/script/look.txtar", `--as name\b`, "a script draws it"},
	{"viz/doc.go", `\bNAME\b`, "the package comment lists it"},
	{"doc.go", `\bNAME\b`, "the overview lists it"},
	{"docs/architecture.md", `\bNAME\b`, "the page on drawings lists it"},
	{"docs/features.md", "`NAME`", "the table of features lists it"},
}

// TestRenderersAreInEveryPlace fails for each place that a new renderer was not added to. CONTRIBUTING.md says what
// belongs there.
func TestRenderersAreInEveryPlace(t *testing.T) {
	sources, err := filepath.Glob("viz/*.go")
	require.NoError(t, err)
	var names []string
	for _, m := range renderer.FindAllStringSubmatch(read(t, sources), -1) {
		names = append(names, m[1])
	}
	require.Contains(t, names, "Mermaid")

	for _, name := range names {
		fill := strings.NewReplacer("NAME", name, "name", strings.ToLower(name)).Replace
		for _, place := range rendererPlaces {
			files, err := filepath.Glob(fill(place.files))
			require.NoError(t, err)
			if !regexp.MustCompile(fill(place.text)).MatchString(read(t, files)) {
				t.Errorf("viz.%s is not in %s: %s", name, fill(place.files), place.why)
			}
		}
	}

	golden, err := filepath.Glob("viz/testdata/every_kind.*")
	require.NoError(t, err)
	require.Len(t, golden, len(names), "each renderer has a golden file of the conversation with every kind of node")
}

// read returns the contents of files, one after the other.
func read(t *testing.T, files []string) string {
	t.Helper()
	var all strings.Builder
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		all.Write(data)
	}
	return all.String()
}
