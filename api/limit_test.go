package api_test

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
)

// busyFor is a provider that takes its time, and counts.
type busyFor struct {
	mu        sync.Mutex
	time      time.Duration
	now, peak int
	begun     []time.Time
	fails     int
}

func (b *busyFor) Stream(ctx context.Context, _ api.Request) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		b.mu.Lock()
		b.now++
		b.peak = max(b.peak, b.now)
		b.begun = append(b.begun, time.Now())
		failing := len(b.begun) <= b.fails
		b.mu.Unlock()
		time.Sleep(b.time)
		b.mu.Lock()
		b.now--
		b.mu.Unlock()
		if failing {
			yield(nil, busy)
			return
		}
		yield(done, nil)
	}
}

func TestClientMakesAsManyRequestsAtATimeAsItMay(t *testing.T) {
	for limit, want := range map[int]int{0: 9, 1: 1, 3: 3, 20: 9} {
		synctest.Test(t, func(t *testing.T) {
			p := &busyFor{time: time.Second, fails: 4}
			client := api.NewClient(p, &api.ClientOptions{MaxConcurrent: limit})
			var wg sync.WaitGroup
			for i := range 9 {
				wg.Go(func() {
					model := api.With(client, api.Options{MaxTokens: i + 1}) // shares the limit
					if _, err := api.NewClient(model, nil).Send(t.Context(), request); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			require.Equal(t, want, p.peak)
			require.Len(t, p.begun, 13, "9 requests and 4 retries")
		})
	}
}

func TestClientSpacesItsRequestsEvenly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &busyFor{time: 10 * time.Second, fails: 2}
		client := api.NewClient(p, &api.ClientOptions{RequestsPerMinute: 20})
		start := time.Now()
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() { _, _ = client.Send(t.Context(), request) })
		}
		wg.Wait()
		require.Len(t, p.begun, 7, "retries are counted")
		require.Zero(t, p.begun[0].Sub(start), "the first one does not wait")
		for i := range p.begun[1:] {
			// The limiter counts turns in floats: after a wait with a random part it may be a nanosecond early.
			require.GreaterOrEqual(t, p.begun[i+1].Sub(p.begun[i]), 3*time.Second-time.Microsecond, i)
		}
		require.Equal(t, 12*time.Second, p.begun[4].Sub(start))

		time.Sleep(time.Hour)
		start = time.Now()
		_, err := client.Send(t.Context(), request)
		require.NoError(t, err)
		require.Equal(t, 10*time.Second, time.Since(start), "nothing is owed for a time without requests")
	})
}

func TestARequestThatItsLimitLeavesNoTimeForFailsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := script(good)
		client := api.NewClient(p, &api.ClientOptions{RequestsPerMinute: 2, MaxConcurrent: 1})
		_, err := client.Send(t.Context(), request)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 12*time.Second)
		defer cancel()
		start := time.Now()
		_, err = client.Send(ctx, request)
		require.ErrorIs(t, err, api.ErrRateLimited)
		require.ErrorContains(t, err, "the client's own limit of 2 requests a minute: the next one is allowed in 30 s, and the context ends in 12 s")
		require.Zero(t, time.Since(start))

		time.Sleep(20 * time.Second)
		_, err = client.Send(t.Context(), request)
		require.NoError(t, err)
		require.Equal(t, 30*time.Second, time.Since(start), "the refused one took no turn, and left its slot")
		require.Equal(t, 2, p.requests)
	})
}

func TestCancelledRequestReleasesItsPlaceInTheQueue(t *testing.T) {
	for name, o := range map[string]*api.ClientOptions{"at a time": {MaxConcurrent: 1}, "a minute": {RequestsPerMinute: 1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := api.NewClient(&busyFor{time: time.Minute}, o)
				go func() { _, _ = client.Send(t.Context(), request) }()
				synctest.Wait()
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second, func() { cancel(errEnough) })
				_, err := client.Send(ctx, request)
				require.ErrorIs(t, err, context.Canceled)
				require.ErrorIs(t, err, errEnough)

				start := time.Now()
				_, err = client.Send(t.Context(), request)
				require.NoError(t, err)
				require.Equal(t, 119*time.Second, time.Since(start), "a minute less a second in line, and a minute for the answer")
			})
		})
	}
}

// A batch of requests, no more than two of them at a time, and no more than 600 a minute.
func ExampleClientOptions() {
	model := apitest.NewScript(apitest.Say("Fine.").Always())
	client := api.NewClient(model, &api.ClientOptions{MaxConcurrent: 2, RequestsPerMinute: 600})

	answers := make([]string, 5)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() {
			answer, err := client.Send(context.Background(), request)
			answers[i] = fmt.Sprint(answer.Blocks.Text(), " ", err)
		})
	}
	wg.Wait()
	fmt.Println(len(model.Requests()), answers[4])
	// Output: 5 Fine. <nil>
}
