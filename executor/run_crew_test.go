package executor

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// sleeps is work for that long.
type sleeps time.Duration

func (s sleeps) work() { time.Sleep(time.Duration(s)) }

func TestJoinWaitsForJobsAsLongAsTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w crew
		w.start(sleeps(time.Minute))
		start := time.Now()
		w.join(time.Second)
		require.Equal(t, time.Second, time.Since(start))

		var idle crew
		idle.start(sleeps(time.Minute))
		start = time.Now()
		idle.join(time.Hour)
		require.Equal(t, time.Minute, time.Since(start))
		idle.join(time.Hour) // nothing is left to wait for
		require.Equal(t, time.Minute, time.Since(start))
	})
}
