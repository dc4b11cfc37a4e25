package main

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/testkit/pgtest"
)

// TestMain is the program in the processes that the program starts, because there the test binary is the program.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "engine" || os.Args[1] == "worker" || os.Args[1] == "program") {
		if os.Args[1] == "program" {
			os.Args = os.Args[1:]
		}
		main()
		os.Exit(0)
	}
	os.Exit(pgtest.Run(m))
}

const printed = `ann has begun a call, and is killed
bob has started
done – Order A-1 was refunded by bob.
done – Order A-2 was refunded by bob.
done – Order A-3 was refunded by bob.
`

func TestRunsFinishAfterAWorkerWasKilled(t *testing.T) {
	t.Parallel()
	requirePrinted(t)
}

func TestRunsFinishOnPostgreSQL(t *testing.T) {
	t.Parallel()
	requirePrinted(t, pgtest.Database(t))
}

func requirePrinted(t *testing.T, args ...string) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	out, err := exec.CommandContext(t.Context(), self, append([]string{"program"}, args...)...).CombinedOutput()
	require.NoError(t, err, string(out))

	require.Equal(t, printed, string(out))
}
