// Package goldentest compares the output of tests with golden files.
package goldentest

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// Update is the flag -update of a test: golden files are written rather than compared.
var Update = flag.Bool("update", false, "write the golden files anew")

// Require requires the given text in the named file in testdata. With [Update] it writes the file first: look at the
// difference before you commit it.
func Require(t testing.TB, name, text string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *Update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}

	want, err := os.ReadFile(file)
	require.NoError(t, err, "run with -update to write it")
	require.Equal(t, string(want), text, "run with -update if the change is meant")
}

// WithoutTimes returns a log without how long its calls and runs took, where a test runs on the system's clock: a call
// says so from half a millisecond on, which a busy machine needs for any. A test in a synctest bubble does without.
func WithoutTimes(log string) string { return took.ReplaceAllString(log, "") }

var took = regexp.MustCompile(`( ·)? \d[\d.hm]*s\b`)
