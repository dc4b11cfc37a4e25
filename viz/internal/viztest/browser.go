package viztest

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// BrowserCheck returns the folder of a browser check: "mermaid" or "page", below .ci/browser of the checkout. It skips
// the test unless the environment variable named setting is set: to "firefox" for Firefox, or to "1" or "all" for
// Chromium. If it is set, the test fails if node, the check's packages or the browser are missing.
func BrowserCheck(t testing.TB, name, setting string) string {
	t.Helper()
	value := os.Getenv(setting)
	if value == "" {
		t.Skipf("SKIPPED: this test needs node, a browser and a minute or more; set %s=1 to run it", setting)
	}

	folder := filepath.Join(checkout(t), ".ci", "browser", name)
	browser := cmp.Or(os.Getenv("CHROMIUM"), "/usr/bin/chromium")
	if value == "firefox" {
		browser = cmp.Or(os.Getenv("FIREFOX"), "/usr/bin/firefox-esr")
	} else {
		require.Contains(t, []string{"1", "all"}, value, "%s names no browser: set it to 1 or firefox", setting)
	}

	_, err := exec.LookPath("node")
	require.NoError(t, err, "%s is set, but node is missing", setting)
	for _, need := range []string{browser, filepath.Join(folder, "node_modules", "playwright-core")} {
		_, err := os.Stat(need)
		require.NoError(t, err, "%s is set, but something is missing; .ci/browser/install.sh installs it", setting)
	}
	return folder
}

// checkout returns the nearest folder above the test's own with a folder .ci/browser.
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
