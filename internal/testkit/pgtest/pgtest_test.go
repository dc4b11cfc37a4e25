package pgtest

import (
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestClusterSurvivesACrashAndIsRemoved(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: a server is started twice, in -short")
	}
	c, err := Start()
	if errors.Is(err, errNoServer) && os.Getenv("PLAIT_POSTGRES") == "" {
		t.Skipf("SKIPPED: %v", err)
	}
	require.NoError(t, err)

	one, err := c.Database()
	require.NoError(t, err)
	two, err := c.Database()
	require.NoError(t, err)
	require.NotEqual(t, one, two)

	psql, err := exec.LookPath(c.bin + "/psql")
	require.NoError(t, err)
	run := func(query string) string {
		out, err := exec.Command(psql, one, "-tAc", query).CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	run(`CREATE TABLE kept AS SELECT 1 AS n`)
	require.NoError(t, c.Stop(true))
	require.NoError(t, c.Restart())
	require.Equal(t, "1\n", run(`SELECT n FROM kept`))

	require.NoError(t, c.Remove())
	require.NoDirExists(t, c.Socket)
}
