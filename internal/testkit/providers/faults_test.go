package providers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
)

// once makes a request without retries, and returns the answer and the error.
func once(t *testing.T, model api.Provider) (api.Response, error) {
	return api.NewClient(model, &api.ClientOptions{Attempts: 1}).Send(t.Context(), greeting())
}

// fault is a way in which a request fails, and the kind of its error.
type fault struct {
	name    string
	kinds   []error // one of these
	handler func(t *testing.T, p provider, noStream bool) http.HandlerFunc
}

func status(code int, header ...string) func(t *testing.T, p provider, noStream bool) http.HandlerFunc {
	return func(t *testing.T, p provider, _ bool) http.HandlerFunc {
		reply := p.fails(code)
		return func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			io.WriteString(w, reply.Body)
		}
	}
}

// says answers with a body, whatever is asked.
func says(code int, kind, body string) func(t *testing.T, p provider, noStream bool) http.HandlerFunc {
	return func(*testing.T, provider, bool) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(code)
			io.WriteString(w, body)
		}
	}
}

// broken answers as the API does, but for what alter makes of the body.
func broken(alter func(body []byte) []byte) func(t *testing.T, p provider, noStream bool) http.HandlerFunc {
	return func(t *testing.T, p provider, noStream bool) http.HandlerFunc {
		res := p.answer(t, noStream)
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", res.Header.Get("Content-Type"))
			w.Write(alter(body))
		}
	}
}

func half(body []byte) []byte { return body[:len(body)/2] }

// reset closes the connection, after the first n bytes of the answer, so that the client sees an error.
func reset(n int) func(t *testing.T, p provider, noStream bool) http.HandlerFunc {
	return func(t *testing.T, p provider, noStream bool) http.HandlerFunc {
		res := p.answer(t, noStream)
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		return func(w http.ResponseWriter, _ *http.Request) {
			if n > 0 {
				w.Header().Set("Content-Type", res.Header.Get("Content-Type"))
				w.Header().Set("Content-Length", fmt.Sprint(len(body)))
				w.Write(body[:n])
				w.(http.Flusher).Flush()
			}
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				conn.(*net.TCPConn).SetLinger(0)
				conn.Close()
			}
		}
	}
}

var transient = []error{api.ErrServer, api.ErrTransport, api.ErrCut}

var faults = []fault{
	{"429", []error{api.ErrRateLimited}, status(429)},
	{"429 with retry-after", []error{api.ErrRateLimited}, status(429, "Retry-After", "7")},
	{"500", []error{api.ErrServer}, status(500)},
	{"502 of a gateway, as HTML", []error{api.ErrServer, api.ErrOverloaded}, says(502, "text/html", "<html><body>Bad gateway</body></html>")},
	{"503", []error{api.ErrOverloaded, api.ErrServer}, status(503)},
	{"529", []error{api.ErrOverloaded, api.ErrServer}, status(529)},
	{"400", []error{api.ErrInvalidRequest}, status(400)},
	{"401", []error{api.ErrAuth}, status(401)},
	{"403", []error{api.ErrAuth}, status(403)},
	{"404", []error{api.ErrNotFound}, status(404)},
	{"an error that is no JSON", []error{api.ErrServer}, says(500, "application/json", "{")},
	{"an error that is nothing", []error{api.ErrServer}, says(500, "", "")},
	{"malformed JSON", append(transient, api.ErrProtocol), broken(func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(`"`), []byte(`"'`)) })},
	{"JSON of another kind", append(transient, api.ErrProtocol), says(200, "application/json", `[1,2,3]`)},
	{"null", append(transient, api.ErrProtocol), says(200, "application/json", `null`)},
	{"an empty object", append(transient, api.ErrProtocol, api.ErrFiltered), says(200, "application/json", `{}`)},
	{"nothing at all", append(transient, api.ErrProtocol), says(200, "application/json", "")},
	{"an empty stream", append(transient, api.ErrProtocol), says(200, "text/event-stream", "")},
	{"a stream of comments", append(transient, api.ErrProtocol), says(200, "text/event-stream", strings.Repeat(": keep-alive\n\n", 100))},
	{"a page in the place of an answer", append(transient, api.ErrProtocol), says(200, "text/html", "<html>Please log in</html>")},
	{"binary rubbish", append(transient, api.ErrProtocol), says(200, "application/octet-stream", "\x00\xff\x01\xfe")},
	{"deep JSON", append(transient, api.ErrProtocol), says(200, "application/json", strings.Repeat("[", 200_000))},
	{"a deep event", append(transient, api.ErrProtocol), says(200, "text/event-stream", "data: "+strings.Repeat(`{"a":`, 200_000)+"\n\n")},
	{"half an answer", append(transient, api.ErrProtocol), broken(half)},
	{"connection reset before the answer", []error{api.ErrTransport}, reset(0)},
	{"connection reset in the answer", []error{api.ErrTransport, api.ErrCut}, reset(40)},
}

// TestFaults lets every API fail in every way, and asks for the kind of the error, that it comes from the API, and that
// a conversation that ran into it is still what it was and valid.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			each(t, func(t *testing.T, p provider, noStream bool) {
				model := p.at(serve(t, f.handler(t, p, noStream)), api.Options{}, noStream)
				_, err := once(t, model)
				var failure *api.Error
				require.ErrorAs(t, err, &failure)
				require.Equal(t, p.name, failure.API)
				require.True(t, isOneOf(err, f.kinds), "%v", err)
				require.NotContains(t, err.Error(), "\n")
				requireNothingLost(t, model, err)
			})
		})
	}
}

func isOneOf(err error, kinds []error) bool {
	for _, kind := range kinds {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// requireNothingLost runs a conversation that fails.
func requireNothingLost(t *testing.T, model api.Provider, kind error) {
	before := dag.New().System("Be brief.").User("Hello")
	d, err := executor.Run(t.Context(), api.NewClient(model, &api.ClientOptions{Attempts: 1}), before)
	require.Error(t, err, kind)
	require.Empty(t, d.Validate())
	require.Equal(t, before.Messages(), d.Messages()[:1])
	for _, n := range d.Nodes() {
		if m, ok := n.Message(); ok && m.Role == content.Assistant {
			require.Equal(t, content.StopCut, m.Answer.Stop)
			require.Contains(t, "Hello there.", m.Blocks.Text())
			require.True(t, m.Answer.Usage.Incomplete)
		}
	}
}

// TestNoRetryComesBeforeRetryAfter counts requests: those of api.Client, and none of an SDK's own.
func TestNoRetryComesBeforeRetryAfter(t *testing.T) {
	each(t, func(t *testing.T, p provider, noStream bool) {
		var asked atomic.Int32
		handler := status(429, "Retry-After", "3600")(t, p, noStream)
		server := serve(t, func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			handler(w, r)
		})
		client := api.NewClient(p.at(server, api.Options{}, noStream), &api.ClientOptions{Attempts: 3, MaxRetryAfter: time.Minute})

		var waits []time.Duration
		var last error
		for event, err := range client.Stream(t.Context(), greeting()) {
			if retry, ok := event.(api.Retry); ok {
				waits = append(waits, retry.Wait)
			}
			last = err
		}

		require.ErrorIs(t, last, api.ErrRateLimited)
		var failure *api.Error
		require.ErrorAs(t, last, &failure)
		require.Equal(t, time.Hour, failure.RetryAfter)
		require.ErrorContains(t, last, "the provider asks to wait 3600 s, and the maximum is 60 s")

		require.Empty(t, waits)
		require.EqualValues(t, 1, asked.Load(), "nothing asks again before the time that the provider gave")
	})
}

// cuts are the lengths to which an answer is cut: all with PLAIT_LONG, otherwise those at the ends of lines and each fifth.
func cuts(body []byte) (lengths []int) {
	for n := range body {
		line := bytes.IndexByte(body[max(0, n-1):n+1], '\n') >= 0
		if line || n%5 == 0 || n == len(body)-1 || seedtest.Long() {
			lengths = append(lengths, n)
		}
	}
	return lengths
}

// TestAStreamCutAtAnyByte cuts the answer behind many bytes, or every one with PLAIT_LONG. What comes is an error, or the
// whole answer where nothing but its last words to the wire were missing; never half an answer that looks whole.
func TestAStreamCutAtAnyByte(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p provider, noStream bool) {
		res := p.answer(t, noStream)
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)

		var cut atomic.Int64
		server := direct(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", res.Header.Get("Content-Type"))
			w.Write(body[:cut.Load()])
		}))

		model := p.at(server, api.Options{}, noStream)
		cut.Store(int64(len(body)))
		whole, err := once(t, model)
		require.NoError(t, err)

		// These report the usage at the end alone.
		failed, known := 0, noStream || p.name == "openai-chat" || p.name == "openai-responses"
		lengths := cuts(body)
		for _, n := range lengths {
			cut.Store(int64(n))
			answer, err := once(t, model)
			if err == nil {
				require.True(t, whole.Blocks.Equal(answer.Blocks), "cut at %d of %d", n, len(body))
				require.Equal(t, whole.Stop, answer.Stop, "cut at %d of %d", n, len(body))
				counted := answer.Usage == whole.Usage || answer.Usage.Incomplete
				require.True(t, counted, "cut at %d of %d: %+v is not the usage, and says nothing of that", n, len(body), answer.Usage)
				continue
			}

			failed++
			require.True(t, strings.HasPrefix(whole.Blocks.Text(), answer.Blocks.Text()), "cut at %d: %q arrived", n, answer.Blocks.Text())
			require.Empty(t, answer.Blocks.ToolUses(), "cut at %d", n)
			reported := answer.Finish == api.Finish{} || answer.API == p.name && answer.Stop == content.StopCut && answer.Usage.Incomplete
			require.True(t, reported, "cut at %d: %+v", n, answer.Finish)
			known = known || answer.Usage.Input > 0
			require.True(t, isOneOf(err, []error{api.ErrCut, api.ErrProtocol, api.ErrTransport}), "cut at %d: %v", n, err)
		}

		require.Greater(t, failed, len(lengths)/3)
		require.True(t, known, "the usage that came first is lost")
	})
}

// TestAStreamInSmallPieces sends the answer byte by byte: it is the same.
func TestAStreamInSmallPieces(t *testing.T) {
	each(t, func(t *testing.T, p provider, noStream bool) {
		res := p.answer(t, noStream)
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		slow := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", res.Header.Get("Content-Type"))
			for _, b := range body {
				w.Write([]byte{b})
				w.(http.Flusher).Flush()
			}
		})
		answer, err := once(t, p.at(slow, api.Options{}, noStream))
		require.NoError(t, err)
		require.Equal(t, "Hello there.", answer.Blocks.Text())
		require.Len(t, answer.Blocks.ToolUses(), 1)
		require.Equal(t, content.StopToolUse, answer.Stop)
	})
}

// TestAStallIsAnError lets the API stop in the middle of the answer, and before it.
func TestAStallIsAnError(t *testing.T) {
	each(t, func(t *testing.T, p provider, noStream bool) {
		res := p.answer(t, noStream)
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		for _, n := range []int{0, len(body) / 2} {
			server := serve(t, nil)
			if server.Client().Transport = silent; n > 0 {
				server.Client().Transport = stalling(res.Header, body[:n])
			}
			model := p.at(server, api.Options{Idle: 50 * time.Millisecond}, noStream)

			synctest.Test(t, func(t *testing.T) { _, err = once(t, model) })
			require.ErrorIs(t, err, api.ErrStalled)
			require.NotErrorIs(t, err, context.Canceled, "nobody cancelled the request")
			require.True(t, api.Retryable(err))
			said := "provider stalled: nothing received for 0.05 s"
			if n > 0 {
				said += " in the middle of the answer"
			}
			require.ErrorContains(t, err, said)
		}
	})
}

// TestSilenceIsAStallAfterFiveMinutesOrTenForAWholeAnswer sends requests without Options.Idle to a server that never
// answers.
func TestSilenceIsAStallAfterFiveMinutesOrTenForAWholeAnswer(t *testing.T) {
	each(t, func(t *testing.T, p provider, noStream bool) {
		server := serve(t, nil)
		server.Client().Transport = silent
		model := p.at(server, api.Options{}, noStream)

		synctest.Test(t, func(t *testing.T) {
			start, want := time.Now(), 5*time.Minute
			if noStream {
				want = 10 * time.Minute
			}
			_, err := once(t, model)
			require.ErrorIs(t, err, api.ErrStalled)
			require.Equal(t, want, time.Since(start))
		})
	})
}

// transport is a network without a server, in which time is that of a bubble.
type transport func(r *http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// silent never gets an answer.
var silent = transport(func(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
})

// stalling gets the beginning of an answer, and then nothing.
func stalling(header http.Header, beginning []byte) transport {
	return answering(header.Get("Content-Type"), func(ctx context.Context, read int) ([]byte, error) {
		if read == 0 {
			return beginning, nil
		}
		<-ctx.Done()
		return nil, ctx.Err()
	})
}

// answering gets an answer of the pieces that next returns.
func answering(contentType string, next func(ctx context.Context, read int) ([]byte, error)) transport {
	return func(r *http.Request) (*http.Response, error) {
		body := &pieces{ctx: r.Context(), next: next}
		header := http.Header{"Content-Type": {contentType}}
		return &http.Response{StatusCode: http.StatusOK, Header: header, Body: body, Request: r}, nil
	}
}

// pieces is the body of an answer.
type pieces struct {
	ctx  context.Context
	next func(ctx context.Context, read int) ([]byte, error)
	read int    // how many pieces
	rest []byte // of the last one
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		piece, err := p.next(p.ctx, p.read)
		if err != nil {
			return 0, err
		}
		p.rest, p.read = piece, p.read+1
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

func (p *pieces) Close() error { return nil }

// TestASlowLorisIsNoStall sends a sign of life now and then: the request goes on until the context ends it.
func TestASlowLorisIsNoStall(t *testing.T) {
	each(t, func(t *testing.T, p provider, noStream bool) {
		server := serve(t, nil)
		model := p.at(server, api.Options{Idle: 100 * time.Millisecond}, noStream)
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			server.Client().Transport = answering("text/event-stream", func(ctx context.Context, read int) ([]byte, error) {
				if time.Sleep(10 * time.Millisecond); read == 20 {
					cancel()
				}
				return []byte(": still here\n\n"), ctx.Err()
			})

			_, err := api.NewClient(model, nil).Send(ctx, greeting())
			require.ErrorIs(t, err, context.Canceled)
			require.NotErrorIs(t, err, api.ErrStalled)
		})
	})
}

// TestAnEndlessAnswerIsRefused sends an answer without end, quickly: in long comments, and with PLAIT_LONG in short ones.
func TestAnEndlessAnswerIsRefused(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED: hundreds of megabytes, in -short")
	}

	comment := ":" + strings.Repeat(" nothing", seedtest.Rounds(1000, 1)) + "\n\n"
	comments := []byte(strings.Repeat(comment, 100_000/len(comment)))
	for _, p := range providers {
		t.Run(p.name, func(t *testing.T) {
			server := serve(t, nil)
			server.Client().Transport = answering("text/event-stream", func(ctx context.Context, _ int) ([]byte, error) {
				return comments, ctx.Err()
			})
			_, err := once(t, p.at(server, api.Options{}, false))
			require.True(t, isOneOf(err, []error{api.ErrProtocol, api.ErrCut}), "%v", err)
			require.False(t, api.Retryable(err), "asking again would bring as much: %v", err)
		})
	}
}

// TestALineWithoutEndIsRefused sends one event without end.
func TestALineWithoutEndIsRefused(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED: hundreds of megabytes, in -short")
	}
	for _, p := range providers {
		t.Run(p.name, func(t *testing.T) {
			words := []byte(strings.Repeat("x", 100_000))
			server := serve(t, nil)
			server.Client().Transport = answering("text/event-stream", func(ctx context.Context, read int) ([]byte, error) {
				if read == 0 {
					return []byte("data: "), nil
				}
				return words, ctx.Err()
			})
			_, err := once(t, p.at(server, api.Options{}, false))
			require.True(t, isOneOf(err, []error{api.ErrProtocol, api.ErrCut, api.ErrTransport}), "%v", err)
		})
	}
}

// TestFailingOnceIsSurvived lets a run go on after a failure of each kind that is retried.
func TestFailingOnceIsSurvived(t *testing.T) {
	each(t, func(t *testing.T, p provider, noStream bool) {
		fake := p.fake(p.fails(503), p.says(content.Text{Text: "Hello."}))
		server := serve(t, fake.ServeHTTP)
		d, err := executor.Run(t.Context(), api.NewClient(p.at(server, api.Options{}, noStream), &api.ClientOptions{MinWait: time.Millisecond}), dag.New().User("Hello"))
		require.NoError(t, err)
		require.Equal(t, "Hello.", d.Text())
		require.Empty(t, fake.Refused())
		require.Len(t, fake.Bodies(), 2)
		require.Equal(t, fake.Bodies()[0], fake.Bodies()[1])
	})
}
