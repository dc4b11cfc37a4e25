package viztest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// BrowserCheck returns the folder of a check that runs in Chromium: "mermaid" or "page", below .ci/browser of the
// checkout. It skips the test unless the environment variable named setting is "1" or "all". If it is set, the test
// fails where node, the check's packages or Chromium are missing.
func BrowserCheck(t testing.TB, name, setting string) string {
	t.Helper()
	if value := os.Getenv(setting); value != "1" && value != "all" {
		t.Skipf("SKIPPED: this test needs node, Chromium and a minute or more; set %s=1 to run it", setting)
	}

	folder := filepath.Join(checkout(t), ".ci", "browser", name)
	browser := os.Getenv("CHROMIUM")
	if browser == "" {
		browser = "/usr/bin/chromium"
	}

	_, err := exec.LookPath("node")
	require.NoError(t, err, "%s is set, but node is missing", setting)
	for _, need := range []string{browser, filepath.Join(folder, "node_modules", "playwright-core")} {
		_, err := os.Stat(need)
		require.NoError(t, err, "%s is set, but something is missing; .ci/browser/install.sh installs it", setting)
	}
	return folder
}

// checkout returns the nearest folder above the test's own that has .ci/browser.
func checkout(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	require.NoError(t, err)
	for {
		if _, err := os.Stat(filepath.Join(dir, ".ci", "browser")); err == nil {
			return dir
		}

		parent := filepath.Dir(dir)
		require.NotEqual(t, parent, dir, "no .ci/browser above the test's folder: the browser checks run in a checkout only")
		dir = parent
	}
}
