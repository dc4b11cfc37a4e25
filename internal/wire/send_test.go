package wire

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

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
