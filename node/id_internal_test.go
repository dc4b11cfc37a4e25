package node

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestIDsOfAClockBefore1970AreOfThatYear: a machine without a battery may start with such a clock. The IDs after it, of
// a clock that was set, have their own time again.
func TestIDsOfAClockBefore1970AreOfThatYear(t *testing.T) {
	epoch := time.Unix(0, 0)
	var ids idMaker
	for _, at := range []time.Time{epoch.Add(-time.Nanosecond), epoch.AddDate(-300, 0, 0), epoch.AddDate(50, 0, 0)} {
		seconds, _ := ids.next(at).Time().UnixTime()
		require.Equal(t, max(at.Unix(), 0), seconds)
	}
}
