package wire

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

var errSilent = errors.New("it is silent")

func TestWatchEndsARequestThatIsSilent(t *testing.T) {
	for name, test := range map[string]struct{ idle, after time.Duration }{
		"a limit":    {time.Second, time.Second},
		"by default": {0, Idle},
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

func TestEveryByteIsASignOfLife(t *testing.T) {
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

func TestWatchTellsAStallFromTheEndOfTheContext(t *testing.T) {
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

func TestPartsAreOneBody(t *testing.T) {
	for _, parts := range [][]string{{}, {""}, {"a"}, {"ab", "", "c"}, {"", "", ""}, {strings.Repeat("x", 10_000), "y"}} {
		var list [][]byte
		for _, part := range parts {
			list = append(list, []byte(part))
		}
		want := strings.Join(parts, "")
		p := NewParts(list...)
		require.Equal(t, len(want), p.Len())
		require.Equal(t, want, string(p.Bytes()))
		got, err := io.ReadAll(iotest.OneByteReader(p))
		require.NoError(t, err)
		require.Equal(t, want, string(got))
		_, err = p.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
		require.NoError(t, p.Close())
		require.Equal(t, want, string(p.Bytes()), "what was read is still there")
		require.NoError(t, iotest.TestReader(NewParts(list...), []byte(want)))
	}
}

func TestPartsAreReadByOneAtATime(t *testing.T) {
	p := NewParts([]byte(strings.Repeat("a", 5000)), []byte(strings.Repeat("b", 5000)))
	var mu sync.Mutex
	var wg sync.WaitGroup
	read := 0
	for range 4 {
		wg.Go(func() {
			n, err := io.Copy(io.Discard, struct{ io.Reader }{p})
			mu.Lock()
			defer mu.Unlock()
			read += int(n)
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.Equal(t, 10_000, read)
}

func TestPartsAreSentWithTheirLengthAndCanBeSentAgain(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.ContentLength != int64(len(body)) {
			t.Errorf("length %d, %v", r.ContentLength, err)
		}
		if got = append(got, string(body)); len(got) == 1 {
			http.Redirect(w, r, "/again", http.StatusTemporaryRedirect)
		}
	}))
	defer server.Close()
	req, err := http.NewRequest("POST", server.URL, nil)
	require.NoError(t, err)
	req.TransferEncoding = []string{"chunked"}
	req.Body, req.ContentLength = NewParts([]byte("one,"), []byte("two")), -1
	Sized(req)
	res, err := server.Client().Do(req)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, []string{"one,two", "one,two"}, got)
}

func TestSizedLeavesOtherBodiesAlone(t *testing.T) {
	req, err := http.NewRequest("POST", "http://a.example", io.NopCloser(strings.NewReader("x")))
	require.NoError(t, err)
	before := *req
	Sized(req)
	require.Equal(t, before.Body, req.Body)
	require.Nil(t, req.GetBody)
	Sized(&http.Request{})
}

// TestClosedKeptAliveConnectionIsReplaced closes each connection while its second request is read, as a server does that ends an idle
// connection at the very moment it is used again.
func TestClosedKeptAliveConnectionIsReplaced(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var served sync.WaitGroup
	accepted := make(chan int, 10)
	served.Go(func() {
		for n := 0; ; n++ {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			accepted <- n
			served.Go(func() { serveOnce(conn) })
		}
	})
	client := &http.Client{Transport: &http.Transport{}}

	for range 3 {
		req, err := http.NewRequest("POST", "http://"+listener.Addr().String(), nil)
		require.NoError(t, err)
		NewParts([]byte("one,"), []byte("two")).Send(req)
		res, err := client.Do(req)
		require.NoError(t, err)
		got, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, "one,two", string(got))
		require.Empty(t, res.Header.Get("Saw-Key"), "the header that lets the transport repeat is not sent")
	}
	require.Len(t, accepted, 3)

	client.CloseIdleConnections()
	require.NoError(t, listener.Close())
	served.Wait()
}

// serveOnce answers the first request of a connection with its body, and closes the connection after it has read the second one.
func serveOnce(conn net.Conn) {
	defer conn.Close()
	from := bufio.NewReader(conn)
	for n := range 2 {
		req, err := http.ReadRequest(from)
		if err != nil {
			return
		}
		body, err := io.ReadAll(req.Body)
		if err != nil || n > 0 {
			return
		}
		fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nSaw-Key: %s\r\nContent-Length: %d\r\n\r\n%s", strings.Join(req.Header["Idempotency-Key"], ","), len(body), body)
	}
}

func TestFreshConnectionThatClosesIsAnError(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	accepted := make(chan struct{}, 10)
	var served sync.WaitGroup
	served.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			accepted <- struct{}{}
			conn.Close()
		}
	})
	client := &http.Client{Transport: &http.Transport{}}

	req, err := http.NewRequest("POST", "http://"+listener.Addr().String(), nil)
	require.NoError(t, err)
	NewParts([]byte("x")).Send(req)
	_, err = client.Do(req)
	require.Error(t, err)
	require.Len(t, accepted, 1, "api.Client decides about further attempts")

	client.CloseIdleConnections()
	require.NoError(t, listener.Close())
	served.Wait()
}
