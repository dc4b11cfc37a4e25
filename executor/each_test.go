package executor_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

// numbers are the items 0 to n-1.
func numbers(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}

func TestEachYieldsResultsInTheOrderOfItemsWithinTheLimit(t *testing.T) {
	for _, limit := range []int{-1, 0, 1, 3, 100} {
		synctest.Test(t, func(t *testing.T) {
			var running, peak atomic.Int64
			began, odd := time.Now(), errors.New("odd")
			got := 0
			for value, err := range executor.Each(t.Context(), limit, numbers(12), func(_ context.Context, i int) (int, error) {
				now := running.Add(1)
				defer running.Add(-1)
				for old := peak.Load(); now > old && !peak.CompareAndSwap(old, now); old = peak.Load() {
				}
				time.Sleep(time.Duration(12-i) * time.Second) // later items are faster
				if i%2 == 1 {
					return -i, odd
				}
				return i, nil
			}) {
				if got%2 == 1 {
					require.Equal(t, -got, value, "a result beside its error")
					require.ErrorIs(t, err, odd)
				} else {
					require.Equal(t, got, value)
					require.NoError(t, err)
				}
				got++
			}
			require.Equal(t, 12, got)
			require.Equal(t, int64(min(max(limit, 1), 12)), peak.Load(), "limit %d is used, and kept", limit)
			if limit == 100 {
				require.Equal(t, 12*time.Second, time.Since(began))
			}
		})
	}
}

func TestEachStartsItemsWhileTheConsumerIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		for range executor.Each(t.Context(), 2, numbers(10), func(context.Context, int) (int, error) {
			time.Sleep(time.Second)
			return 0, nil
		}) {
			time.Sleep(time.Second)
		}
		require.Equal(t, 11*time.Second, time.Since(began), "the consumer waits for the first item alone")
	})
}

func TestEachKeepsNoMoreThanEightResultsForEachRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := 0
		next, stop := iter.Pull2(executor.Each(t.Context(), 1, numbers(1000), func(context.Context, int) (int, error) {
			started++
			return 0, nil
		}))
		next()
		synctest.Wait()
		require.LessOrEqual(t, started, 8+3, "those that wait, the one that is yielded, and the one that finds no room")
		stop()
	})
}

func TestEachGivesTheItemsThatWereNotStartedTheErrorOfTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("the user is gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(1500*time.Millisecond, func() { cancel(gone) })
		started := 0
		var failed []bool
		for _, err := range executor.Each(ctx, 1, numbers(5), func(ctx context.Context, i int) (int, error) {
			started++
			return i, wait(ctx, time.Second)
		}) {
			failed = append(failed, err != nil)
			if err != nil {
				require.ErrorIs(t, err, context.Canceled)
			}
			if len(failed) > 2 {
				require.ErrorIs(t, err, gone)
			}
		}
		require.Equal(t, []bool{false, true, true, true, true}, failed)
		require.Equal(t, 2, started)
	})
}

func TestEachThatIsLeftWaitsForWhatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forever := func(yield func(int) bool) {
			for i := 0; yield(i); i++ {
			}
		}
		var ended atomic.Int64
		began := time.Now()
		for value := range executor.Each(t.Context(), 3, forever, func(ctx context.Context, i int) (int, error) {
			if i == 0 {
				return i, nil
			}
			<-ctx.Done()
			time.Sleep(time.Minute) // cleans up
			ended.Add(1)
			return i, ctx.Err()
		}) {
			require.Zero(t, value)
			synctest.Wait()
			break
		}
		require.Equal(t, time.Minute, time.Since(began))
		require.Equal(t, int64(3), ended.Load())
	})
}

func TestEachRaisesPanicsAgain(t *testing.T) {
	panics := func(items iter.Seq[int], run func(context.Context, int) (int, error)) (count int, cause any) {
		defer func() { cause = recover() }()
		for range executor.Each(t.Context(), 2, items, run) {
			count++
		}
		return count, nil
	}
	count, cause := panics(numbers(5), func(_ context.Context, i int) (int, error) {
		if i == 2 {
			panic("the third item")
		}
		return 0, nil
	})
	require.Equal(t, "the third item", cause)
	require.Equal(t, 2, count)

	count, cause = panics(func(yield func(int) bool) {
		yield(1)
		panic("no more items")
	}, func(context.Context, int) (int, error) { return 0, nil })
	require.Equal(t, "no more items", cause)
	require.Equal(t, 1, count)
}

func TestEachWaitsForNoFunctionThatEndsItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, err := range executor.Each(t.Context(), 1, numbers(3), func(context.Context, int) (int, error) {
			runtime.Goexit()
			return 0, nil
		}) {
			require.ErrorContains(t, err, "without a result")
		}
	})
}

func ExampleEach() {
	capitals := map[string]string{"France": "Paris", "Japan": "Tokyo", "Peru": "Lima"}
	model := apitest.NewScript(apitest.Func(func(req api.Request) apitest.Turn {
		question := req.Messages[len(req.Messages)-1].Blocks.Text()
		for country, capital := range capitals {
			if strings.Contains(question, country) {
				return apitest.Say(capital)
			}
		}
		return apitest.Fail(&api.Error{Kind: api.ErrInvalidRequest, Message: "no such country"})
	}).Always())
	agent := executor.Agent{Provider: model}
	base := dag.New().System("Answer in one word.")

	// Two forks of one conversation at a time.
	countries := []string{"France", "Atlantis", "Japan", "Peru"}
	ask := func(ctx context.Context, country string) (dag.DAG, error) {
		return agent.Run(ctx, base.User("The capital of "+country+"?"))
	}
	i := 0
	for d, err := range executor.Each(context.Background(), 2, slices.Values(countries), ask) {
		if err != nil {
			fmt.Println(countries[i]+":", "error:", err)
		} else {
			fmt.Println(countries[i]+":", d.Text())
		}
		i++
	}
	// Output:
	// France: Paris
	// Atlantis: error: invalid request: no such country
	// Japan: Tokyo
	// Peru: Lima
}
