package sqlite

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// busyTimeout sets how long SQLite itself waits for others.
func busyTimeout(d time.Duration) string {
	return fmt.Sprintf(`PRAGMA busy_timeout = %d`, d.Milliseconds())
}

// untilFree calls f again and again while another connection writes, for limit at most. SQLite waits up to 100 ms between
// two attempts: several busy processes then let the database rest for a third of the time.
func untilFree(ctx context.Context, limit time.Duration, f func() error) error {
	for began := time.Now(); ; {
		err := f()
		if !hasCode(err, busy) || time.Since(began) > limit || ctx.Err() != nil {
			return err
		}
		time.Sleep(time.Duration(250+rand.IntN(500)) * time.Microsecond)
	}
}
