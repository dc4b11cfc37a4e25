package idle

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

var errSilent = errors.New("it is silent")

func TestWatchEndsARequestThatIsSilent(t *testing.T) {
	for name, test := range map[string]struct{ idle, after time.Duration }{
		"a limit":    {time.Second, time.Second},
		"by default": {0, Default},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				w := NewWatch(t.Context(), test.idle, errSilent)
				defer w.Stop()
				require.False(t, w.Stalled())
				<-w.Context.Done()
				require.Equal(t, test.after, time.Since(start))
				require.Equal(t, "nothing received for "+Seconds(test.after), w.Silence())
				require.True(t, w.Stalled())
				require.ErrorIs(t, w.Context.Err(), context.Canceled)
				require.ErrorIs(t, context.Cause(w.Context), errSilent)
			})
		})
	}
}

func TestSecondsAreReadByPeople(t *testing.T) {
	for d, want := range map[time.Duration]string{
		5 * time.Minute: "300 s", 48*time.Second + 400*time.Millisecond: "48 s", 10 * time.Second: "10 s", 2500 * time.Millisecond: "2.5 s",
		20 * time.Millisecond: "0.02 s", time.Second: "1 s", 0: "0 s", time.Hour: "3600 s",
	} {
		require.Equal(t, want, Seconds(d))
	}
}

func TestWatchWithoutALimitWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewWatch(t.Context(), -1, errSilent)
		time.Sleep(1000 * time.Hour)
		require.NoError(t, w.Context.Err())
		_, err := io.ReadAll(w.Body(io.NopCloser(strings.NewReader("abc"))))
		require.NoError(t, err)
		w.Stop()
		require.ErrorIs(t, w.Context.Err(), context.Canceled)
		require.False(t, w.Stalled())
	})
}

// slow gives a byte after each wait; after one that is negative, nothing.
type slow struct {
	waits  []time.Duration
	closed bool
}

func (s *slow) Read(p []byte) (int, error) {
	if len(s.waits) == 0 {
		return 0, io.EOF
	}
	wait := s.waits[0]
	s.waits = s.waits[1:]
	time.Sleep(max(wait, -wait))
	if wait < 0 {
		return 0, nil
	}
	p[0] = 'x'
	return 1, nil
}

func (s *slow) Close() error {
	s.closed = true
	return nil
}

func TestEveryByteResetsTheWatch(t *testing.T) {
	const timeout, less = time.Second, time.Second - 1
	for name, test := range map[string]struct {
		waits   []time.Duration
		stalled bool
	}{
		"each in time":          {[]time.Duration{less, less, less, less}, false},
		"the first too late":    {[]time.Duration{timeout + 1}, true},
		"the last too late":     {[]time.Duration{less, less, timeout + 1}, true},
		"nothing is no byte":    {[]time.Duration{-less, less}, true},
		"none":                  {nil, false},
		"too late and in time":  {[]time.Duration{timeout + 1, 1, 1}, true},
		"in time after nothing": {[]time.Duration{-1, less - 1, less}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := NewWatch(t.Context(), timeout, errSilent)
				body := &slow{waits: test.waits}
				watched := w.Body(body)
				_, err := io.ReadAll(watched)
				require.NoError(t, err, "the body itself goes on: it ends with the request's context")
				require.Equal(t, test.stalled, w.Stalled())
				require.NoError(t, watched.Close())
				require.True(t, body.closed)
				w.Stop()
				require.Equal(t, test.stalled, w.Stalled(), "why it ended does not change")
				if len(test.waits) > 0 {
					require.Equal(t, "nothing received for 1 s in the middle of the answer", w.Silence())
				}
			})
		})
	}
}

func TestWatchThatWasStoppedEndsNothingMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewWatch(t.Context(), time.Second, errSilent)
		body := w.Body(io.NopCloser(strings.NewReader("abc")))
		w.Stop()
		w.Stop()
		_, err := body.Read(make([]byte, 1))
		require.NoError(t, err)
		time.Sleep(time.Hour)
		require.False(t, w.Stalled())
	})
}

func TestWatchDistinguishesAStallFromTheEndOfTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		enough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		w := NewWatch(ctx, time.Hour, errSilent)
		defer w.Stop()
		cancel(enough)
		<-w.Context.Done()
		require.False(t, w.Stalled())
		require.ErrorIs(t, context.Cause(w.Context), enough)
		time.Sleep(2 * time.Hour)
		require.False(t, w.Stalled(), "also when the time is over")
	})
}
