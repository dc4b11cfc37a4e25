package batch_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/batch"
	"github.com/plait-dev/plait/internal/filelock"
)

// provider is a batch API in memory. The response to a request is its body in capitals.
type provider struct {
	creating  time.Duration // how long a creation takes
	running   time.Duration // of each batch
	createErr error         // of the next creation; the batch exists if made is set
	made      bool
	change    func(lines []batch.Line) ([]batch.Line, error) // of the results

	mu      sync.Mutex
	batches map[string][]batch.Line
	ends    map[string]time.Time
	sent    []string // the bodies of all requests
	looks   int
}

func (p *provider) driver(model string) batch.Driver {
	return batch.Driver{API: "own", Model: model, Requests: 100, Bytes: 1 << 20, Create: p.create, Results: p.results}
}

func (p *provider) create(ctx context.Context, requests []batch.Line) (string, error) {
	time.Sleep(p.creating)
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.createErr
	if p.createErr = nil; err != nil && !p.made {
		return "", err
	}
	if p.batches == nil {
		p.batches, p.ends = map[string][]batch.Line{}, map[string]time.Time{}
	}
	id := fmt.Sprintf("batch-%d", len(p.batches)+1)
	p.batches[id], p.ends[id] = requests, time.Now().Add(p.running)
	for _, r := range requests {
		p.sent = append(p.sent, string(r.Body))
	}
	return id, errors.Join(err, ctx.Err())
}

func (p *provider) results(_ context.Context, id string, keys []string) iter.Seq2[batch.Line, error] {
	return func(yield func(batch.Line, error) bool) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.looks++
		requests, ok := p.batches[id]
		if !ok || time.Now().Before(p.ends[id]) {
			yield(batch.Line{}, map[bool]error{true: batch.ErrRunning, false: &api.Error{Kind: api.ErrNotFound}}[ok])
			return
		}
		var lines []batch.Line
		for _, r := range slices.Backward(requests) {
			lines = append(lines, batch.Line{Key: r.Key, Body: []byte(strings.ToUpper(string(r.Body)))})
		}
		var err error
		if p.change != nil {
			lines, err = p.change(lines)
		}
		for _, line := range lines {
			if !yield(line, nil) {
				return
			}
		}
		if err != nil {
			yield(batch.Line{}, err)
		}
	}
}

func open(t *testing.T, path string, o *batch.Options) *batch.Batches {
	t.Helper()
	b, err := batch.Open(path, o)
	require.NoError(t, err)
	return b
}

// all makes requests at the same time and returns the responses and the errors, by body.
func all(ctx context.Context, b *batch.Batches, d batch.Driver, bodies ...string) (map[string][]string, map[string]error) {
	var mu sync.Mutex
	var group sync.WaitGroup
	responses, errs := map[string][]string{}, map[string]error{}
	for _, body := range bodies {
		group.Go(func() {
			response, err := b.Do(ctx, d, []byte(body))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs[body] = err
			} else {
				responses[body] = append(responses[body], string(response))
			}
		})
	}
	group.Wait()
	return responses, errs
}

func bodies(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("question-%d", i))
	}
	return list
}

func TestRequestsOfManyRunsShareBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &provider{running: time.Hour}
		var reports []batch.Report
		b := open(t, "", &batch.Options{Report: func(r batch.Report) { reports = append(reports, r) }})
		start := time.Now()
		responses, errs := all(t.Context(), b, p.driver("m"), bodies(250)...)
		require.Empty(t, errs)
		require.Len(t, responses, 250)
		for body, response := range responses {
			require.Equal(t, []string{strings.ToUpper(body)}, response)
		}
		require.Len(t, p.batches, 3, "the limit of the provider is 100 requests")
		require.Len(t, p.sent, 250)
		require.InDelta(t, time.Hour, time.Since(start), float64(2*time.Minute))
		require.LessOrEqual(t, p.looks, 3*62)
		slices.SortFunc(reports, func(a, b batch.Report) int { return strings.Compare(a.ID, b.ID) })
		require.Equal(t, batch.Report{ID: "batch-3", Requests: 50}, reports[4])
		require.Equal(t, batch.Report{ID: "batch-3", Requests: 50, Ended: true}, reports[5])
		require.NoError(t, b.Close())
	})
}

// TestASecondProcessMakesNoRequestTwice ends a process at each moment of a batch, and starts it again.
func TestASecondProcessMakesNoRequestTwice(t *testing.T) {
	for _, after := range []time.Duration{500 * time.Millisecond, 1500 * time.Millisecond, 3 * time.Second, 30 * time.Minute, 2 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "batches")
			p := &provider{running: time.Hour, creating: time.Second}
			list := append(bodies(20), "question-1", "question-1") // equal ones count
			for process := range 3 {
				b := open(t, path, nil)
				ctx, cancel := context.WithTimeoutCause(t.Context(), after, errors.New("killed"))
				if process == 2 {
					cancel()
					ctx, cancel = context.WithCancel(t.Context())
				}
				responses, errs := all(ctx, b, p.driver("m"), list...)
				cancel()
				require.NoError(t, b.Close())
				if process == 2 {
					require.Empty(t, errs)
					require.Len(t, responses["question-1"], 3)
				}
				for _, err := range errs {
					require.EqualError(t, err, "killed")
				}
			}
			require.Len(t, p.sent, 22, "after %s", after)
		})
	}
}

func TestARequestThatFailedIsSentAgainWhenItIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "batches")
		fails := true
		p := &provider{change: func(lines []batch.Line) ([]batch.Line, error) {
			for i := range lines {
				if fails && string(lines[i].Body) == "QUESTION-1" {
					lines[i].Err = &api.Error{Kind: batch.ErrExpired, API: "own"}
				}
			}
			return lines, nil
		}}
		b := open(t, path, nil)
		responses, errs := all(t.Context(), b, p.driver("m"), bodies(3)...)
		require.Len(t, responses, 2)
		require.ErrorIs(t, errs["question-1"], batch.ErrExpired)
		require.EqualError(t, errs["question-1"], "own: the batch expired before the request")
		require.NoError(t, b.Close())

		fails = false
		b = open(t, path, nil)
		responses, errs = all(t.Context(), b, p.driver("m"), bodies(3)...)
		require.Empty(t, errs)
		require.Len(t, responses, 3)
		require.Equal(t, []string{"question-1"}, p.sent[3:])
		require.NoError(t, b.Close())

		// The next process finds the second result.
		b = open(t, path, nil)
		_, errs = all(t.Context(), b, p.driver("m"), bodies(3)...)
		require.Empty(t, errs)
		require.Len(t, p.sent, 4)
		require.NoError(t, b.Close())
	})
}

func TestResultsThatDoNotFitTheRequestsAreErrorsOfThoseAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "batches")
		p := &provider{change: func(lines []batch.Line) ([]batch.Line, error) {
			doubled := batch.Line{Key: lines[1].Key, Body: []byte("another")}
			return append(lines[1:], doubled, lines[2], batch.Line{Key: "unknown"}, batch.Line{}), nil
		}}
		var last batch.Report
		b := open(t, path, &batch.Options{Report: func(r batch.Report) { last = r }})
		responses, errs := all(t.Context(), b, p.driver("m"), bodies(5)...)
		require.Len(t, responses, 3)
		require.Len(t, errs, 2)
		texts := []string{}
		for _, err := range errs {
			require.ErrorIs(t, err, batch.ErrNoResult)
			require.False(t, api.Retryable(err))
			texts = append(texts, err.Error())
		}
		slices.Sort(texts)
		require.Equal(t, []string{
			"own: the batch has no result for the request: it has two results that differ (batch batch-1)",
			"own: the batch has no result for the request: there is no line for it, and there are 2 for unknown requests (batch batch-1)",
		}, texts)
		require.Equal(t, batch.Report{ID: "batch-1", Requests: 5, Failed: 2, Unknown: 2, Ended: true}, last)

		// Nothing is sent again: the provider may have the result.
		_, errs = all(t.Context(), b, p.driver("m"), slices.Collect(maps.Keys(errs))...)
		require.Len(t, errs, 2)
		require.NoError(t, b.Close())
		p.change = nil
		b = open(t, path, nil)
		_, errs = all(t.Context(), b, p.driver("m"), bodies(5)...)
		require.Empty(t, errs)
		require.Len(t, p.sent, 5)
		require.NoError(t, b.Close())
	})
}

func TestResultsThatBreakOffAreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failures := []error{
			&api.Error{Kind: api.ErrCut}, &api.Error{Kind: api.ErrOverloaded}, nil,
		}
		p := &provider{change: func(lines []batch.Line) ([]batch.Line, error) {
			err := failures[0]
			if failures = failures[1:]; err != nil {
				return lines[:1], err
			}
			return lines, nil
		}}
		responses, errs := all(t.Context(), open(t, "", nil), p.driver("m"), bodies(3)...)
		require.Empty(t, errs)
		require.Len(t, responses, 3)

		for _, last := range []error{&api.Error{Kind: api.ErrProtocol}, &api.Error{Kind: api.ErrAuth}, &api.Error{Kind: api.ErrCut}} {
			looks := 0
			p = &provider{change: func([]batch.Line) ([]batch.Line, error) { looks++; return nil, last }}
			b := open(t, "", nil)
			_, errs = all(t.Context(), b, p.driver("m"), bodies(3)...)
			require.Len(t, errs, 3)
			require.ErrorIs(t, errs["question-1"], last)
			require.LessOrEqual(t, looks, 10)

			// The requests stay in their batch.
			p.change = nil
			_, errs = all(t.Context(), b, p.driver("m"), bodies(3)...)
			require.Empty(t, errs)
			require.Len(t, p.sent, 3)
		}
	})
}

func TestABatchInDoubtStopsEverythingUntilItIsResolved(t *testing.T) {
	for _, made := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "batches")
			p := &provider{createErr: &api.Error{Kind: api.ErrTransport, API: "own"}, made: made}
			b := open(t, path, nil)
			require.Error(t, b.Resolve("batch-1"), "nothing is in doubt")
			_, errs := all(t.Context(), b, p.driver("m"), bodies(3)...)
			require.Len(t, errs, 3)
			require.ErrorIs(t, errs["question-0"], batch.ErrInDoubt)
			require.False(t, api.Retryable(errs["question-0"]), "a client must not send it again")
			require.EqualError(t, errs["question-0"], `own: a batch may have been created: look in the provider's list of batches for one with 3 requests, `+
				`made at about 2000-01-01 00:00 UTC, and call Batches.Resolve with its ID, or with "" if there is none: own: connection failed`)
			require.NoError(t, b.Close())

			b = open(t, path, nil)
			_, errs = all(t.Context(), b, p.driver("m"), "question-0", "another")
			require.ErrorIs(t, errs["another"], batch.ErrInDoubt)
			id := ""
			if made {
				id = "batch-1"
			}
			require.NoError(t, b.Resolve(id))
			_, errs = all(t.Context(), b, p.driver("m"), bodies(3)...)
			require.Empty(t, errs)
			require.NoError(t, b.Close())

			b = open(t, path, nil)
			_, errs = all(t.Context(), b, p.driver("m"), bodies(3)...)
			require.Empty(t, errs)
			require.Len(t, p.sent, 3)
			require.NoError(t, b.Close())
		})
	}
}

// TestAWrongAnswerToADoubtIsFound resolves a doubt with IDs of no batch and of other batches, in one process or in several.
func TestAWrongAnswerToADoubtIsFound(t *testing.T) {
	for _, again := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "batches")
			p := &provider{}
			foreign := open(t, "", nil)
			_, errs := all(t.Context(), foreign, p.driver("m"), "foreign")
			require.Empty(t, errs)
			b := open(t, path, nil)
			reopen := func() {
				if again {
					require.NoError(t, b.Close())
					b = open(t, path, nil)
				}
			}
			_, errs = all(t.Context(), b, p.driver("m"), "first")
			require.Empty(t, errs)
			p.createErr, p.made = &api.Error{Kind: api.ErrTransport, API: "own"}, true
			_, errs = all(t.Context(), b, p.driver("m"), "question")
			require.ErrorContains(t, errs["question"], "for one with 1 request, made at about 2000-01-01 00:02 UTC, whose ID is not in the file of the batches, and")
			reopen()

			require.EqualError(t, b.Resolve("batch-2"), "batch: batch-2 is a batch with other requests, by the file; the one in doubt has another ID")
			for id, why := range map[string]string{
				"bogus": "bogus is not that batch: not found", "batch-1": "batch-1 is not that batch: its results belong to other requests",
			} {
				require.NoError(t, b.Resolve(id))
				require.NoError(t, b.Resolve(id), "a second call changes nothing")
				reopen()
				_, errs = all(t.Context(), b, p.driver("m"), "question")
				require.ErrorIs(t, errs["question"], batch.ErrInDoubt)
				require.ErrorContains(t, errs["question"], why)
				reopen()
			}

			// An answer is corrected before anybody has asked.
			require.NoError(t, b.Resolve("batch-1"))
			reopen()
			require.NoError(t, b.Resolve("batch-3"))
			reopen()
			responses, errs := all(t.Context(), b, p.driver("m"), "question")
			require.Empty(t, errs)
			require.Len(t, responses, 1)
			require.Equal(t, []string{"foreign", "first", "question"}, p.sent)
			if !again {
				require.EqualError(t, b.Resolve(""), "batch: no batch is in doubt, so there is nothing to resolve")
			}
			require.NoError(t, b.Close())
		})
	}
}

func TestAFailedLookNamesItsBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &provider{}
		b := open(t, "", nil)
		p.change = func([]batch.Line) ([]batch.Line, error) {
			return nil, &api.Error{Kind: api.ErrNotFound, API: "own", Status: 404, Message: "No such batch."}
		}
		_, errs := all(t.Context(), b, p.driver("m"), "a")
		require.ErrorIs(t, errs["a"], api.ErrNotFound)
		require.EqualError(t, errs["a"], "own: not found (404): batch batch-1: No such batch.")
	})
}

func TestABatchThatWasRefusedIsNotInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "batches")
		for _, refusal := range []error{
			&api.Error{Kind: api.ErrRateLimited}, &api.Error{Kind: api.ErrAuth}, fmt.Errorf("%w: %w", batch.ErrNotCreated, &api.Error{Kind: api.ErrServer}),
		} {
			p := &provider{createErr: refusal}
			b := open(t, path, nil)
			_, errs := all(t.Context(), b, p.driver("m"), "a", "b")
			require.Len(t, errs, 2)
			require.ErrorIs(t, errs["a"], refusal)
			require.NoError(t, b.Close())
		}
	})
}

// TestTheWaitIsTakenOverWhenTheLeaderLeaves cancels requests one after the other.
func TestTheWaitIsTakenOverWhenTheLeaderLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &provider{running: time.Hour}
		b := open(t, "", nil)
		var group sync.WaitGroup
		left := errors.New("left")
		for i := range 20 {
			group.Go(func() {
				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Duration(i)*time.Millisecond*200, left)
				defer cancel()
				_, err := b.Do(ctx, p.driver("m"), []byte(fmt.Sprint("early", i)))
				require.ErrorIs(t, err, left)
			})
		}
		responses, errs := all(t.Context(), b, p.driver("m"), bodies(5)...)
		group.Wait()
		require.Empty(t, errs)
		require.Len(t, responses, 5)
		require.NotContains(t, p.sent, "early0", "it left before there was a batch")
		require.Contains(t, p.sent, "early19")
	})
}

func TestABatchThatNobodyWaitsForIsNotLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &provider{running: 10 * time.Hour}
		b := open(t, "", nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		_, errs := all(ctx, b, p.driver("m"), "a")
		require.ErrorIs(t, errs["a"], context.DeadlineExceeded)
		_, errs = all(t.Context(), b, p.driver("m"), "b")
		require.Empty(t, errs)
		require.InDelta(t, 11*60, p.looks, 5)
	})
}

func TestAFileIsForOneModelAndOneProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "batches")
		p := &provider{}
		b := open(t, path, nil)
		_, errs := all(t.Context(), b, p.driver("m"), "a")
		require.Empty(t, errs)
		_, err := b.Do(t.Context(), p.driver("n"), []byte("b"))
		require.ErrorIs(t, err, batch.ErrFile)
		require.EqualError(t, err, `own: invalid file of batches: the batches are those of "own m", and the request is for "own n": use a file for each model`)
		if filelock.Supported {
			_, err = batch.Open(path, nil)
			require.ErrorIs(t, err, batch.ErrFile)
		}
		require.NoError(t, b.Close())
		_, err = b.Do(t.Context(), p.driver("m"), []byte("c"))
		require.ErrorIs(t, err, batch.ErrFile)
		require.Error(t, b.Close())
	})
}

func TestAFileThatWasNotWrittenWholeLosesItsLastLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "batches")
	const whole = `{"plait_batches":1,"model":"own m"}` + "\n" + `{"create":["a-0"]}` + "\n" + `{"created":"batch-1"}` + "\n"
	for cut := range len(whole) {
		require.NoError(t, os.WriteFile(path, []byte(whole[:cut]), 0o600))
		b, err := batch.Open(path, nil)
		require.NoError(t, err, whole[:cut])
		require.NoError(t, b.Close())
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, whole[:strings.LastIndex(whole[:cut], "\n")+1], string(text))
	}

	for _, wrong := range []string{
		"x\n", "{}\n", "\n", `{"plait_batches":2,"model":"own m"}` + "\n", `{"plait_batches":1,"model":3}` + "\n",
		whole + "{}\n", whole + `{"created":"b"}` + "\n", whole + `{"create":[1]}` + "\n", whole + `{"create":["b"]}` + "\n" + `{"create":["b"]}` + "\n",
		whole + `{"failed":"b"}` + "\n", whole + `{"other":1}` + "\n", strings.Repeat("[", 1e6) + "\n",
	} {
		require.NoError(t, os.WriteFile(path, []byte(wrong), 0o600))
		_, err := batch.Open(path, nil)
		require.ErrorIs(t, err, batch.ErrFile, "%.100s", wrong)
		require.ErrorContains(t, err, "line ")
	}
}

func TestTwentyThousandEqualRequestsShareABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &provider{running: time.Minute}
		d := p.driver("m")
		d.Requests = 1 << 20
		d.Bytes = 1 << 30
		_, errs := all(t.Context(), open(t, filepath.Join(t.TempDir(), "batches"), nil), d, slices.Repeat([]string{"the same"}, 20_000)...)
		require.Empty(t, errs)
		require.Len(t, p.batches, 1)
	})
}
