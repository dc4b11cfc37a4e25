package roundtrip_test

import (
	"context"
	"io"
	"iter"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/internal/idle"
	"github.com/plait-dev/plait/api/internal/roundtrip"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// silent is a request that nothing comes back for.
func silent(call roundtrip.Call) roundtrip.Trip {
	return roundtrip.Trip{
		Prepare: func() (roundtrip.Call, error) { return call, nil },
		Ask: func(watch *idle.Watch, _ roundtrip.Call) iter.Seq2[api.Event, error] {
			return func(yield func(api.Event, error) bool) {
				<-watch.Context.Done()
				yield(nil, watch.Context.Err())
			}
		},
	}
}

func TestWholeResponseMayBeginLaterThanAStream(t *testing.T) {
	for name, test := range map[string]struct {
		call  roundtrip.Call
		after time.Duration
		says  string
	}{
		"a stream":                 {roundtrip.Call{}, 5 * time.Minute, "provider stalled: nothing received for 300 s"},
		"a whole answer":           {roundtrip.Call{Whole: true}, 10 * time.Minute, "provider stalled: nothing received for 600 s"},
		"a limit of the program's": {roundtrip.Call{Whole: true, Options: api.Options{Idle: time.Second}}, time.Second, "nothing received for 1 s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				var failure error
				for _, err := range silent(test.call).Stream(t.Context()) {
					failure = err
				}
				require.ErrorIs(t, failure, api.ErrStalled)
				require.NotErrorIs(t, failure, context.Canceled)
				require.ErrorContains(t, failure, test.says)
				require.Equal(t, test.after, time.Since(start))
			})
		})
	}
}

func TestLinesOfAFileAreWholeOrAnError(t *testing.T) {
	for file, want := range map[string]struct {
		lines int
		kind  error
	}{
		"":                                   {0, nil},
		"{}\n\n {} \n":                       {2, nil},
		"{}\n{}":                             {2, nil},
		"{}\n{\"a":                           {1, api.ErrCut},
		"{}\n{\"a\n{}\n":                     {1, api.ErrProtocol},
		"{}\n" + strings.Repeat(" ", 99):     {1, api.ErrProtocol},
		"[" + strings.Repeat("[", 50) + "\n": {0, api.ErrCut},
	} {
		lines := 0
		err := roundtrip.LinesOf("own", strings.NewReader(file), 64, func([]byte) error { lines++; return nil })
		require.Equal(t, want.lines, lines, file)
		require.ErrorIs(t, err, want.kind, file)
	}
}

func TestEventsOfAStream(t *testing.T) {
	for stream, want := range map[string][]string{
		"data: a\r\ndata:b\nretry: 7\ndata:\n\n\n:\ndata:  c": {"a\nb\n", " c"},
		"data: a\n\ndata: [DONE]\n\ndata: b\n\n":              {"a"},
		"data: a\n\n{\"error\":\n\n{}}":                       {"a", "{\"error\":\n\n{}}"},
		"data: \n\ndata:\n\nevent: x\n\n":                     nil,
	} {
		var got []string
		for data, err := range roundtrip.Events(strings.NewReader(stream)) {
			require.NoError(t, err)
			got = append(got, string(data))
		}
		require.Equal(t, want, got, "%q", stream)
	}

	// What arrived of the last event is no event.
	var broken error
	body := io.MultiReader(strings.NewReader("data: a\n\ndata: b"), iotest.ErrReader(io.ErrUnexpectedEOF))
	for data, err := range roundtrip.Events(body) {
		require.NotEqual(t, "b", string(data))
		broken = err
	}
	require.ErrorIs(t, broken, io.ErrUnexpectedEOF)
}
