package main

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/testkit/pgtest"
)

func TestShopLosesNothingWhenItsProcessesAreKilled(t *testing.T) {
	kills, _ := strconv.Atoi(os.Getenv("PLAIT_KILLS"))
	if kills == 0 {
		t.Skip("SKIPPED: PLAIT_KILLS=100 runs kill.sh, which kills so many processes")
	}
	for _, kind := range []string{"sqlite", "postgres"} {
		t.Run(kind, func(t *testing.T) {
			if kind == "postgres" && pgtest.Missing() {
				t.Skip("SKIPPED: no PostgreSQL server is installed")
			}
			if runtime.GOOS == "windows" {
				t.Skip("SKIPPED: kill.sh needs a shell")
			}
			out, err := exec.CommandContext(t.Context(), "./kill.sh", strconv.Itoa(kills), kind).CombinedOutput()
			require.NoError(t, err, string(out))
			require.Regexp(t, `processes killed +`+strconv.Itoa(kills), string(out))
			t.Logf("%s\n%s", kind, out)
		})
	}
}
