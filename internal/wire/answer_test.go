package wire

import (
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBoundedEndsABodyThatGoesOn(t *testing.T) {
	for length, whole := range map[int]bool{0: true, 1: true, 9: true, 10: false, 11: false, 1000: false} {
		for _, read := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.DataErrReader, func(r io.Reader) io.Reader { return r }} {
			body := &closer{Reader: read(strings.NewReader(strings.Repeat("x", length)))}
			b := &bounded{ReadCloser: body, left: 10}
			got, err := io.ReadAll(b)
			require.Len(t, got, min(length, 10))
			if !whole && err != nil {
				require.ErrorIs(t, err, ErrTooLong)
			} else {
				require.NoError(t, err)
				require.LessOrEqual(t, length, 10)
			}
			require.NoError(t, b.Close())
			require.True(t, body.closed)
		}
	}
	got, err := io.ReadAll(Bounded(io.NopCloser(strings.NewReader("abc"))))
	require.NoError(t, err)
	require.Equal(t, "abc", string(got))
}

// closer knows that it was closed.
type closer struct {
	io.Reader
	closed bool
}

func (c *closer) Close() error {
	c.closed = true
	return nil
}

func TestWithEndEndsTheLastEvent(t *testing.T) {
	for _, said := range []string{"", "data: x", "data: x\n", "data: x\n\n", strings.Repeat("data: y\n\n", 1000)} {
		for _, read := range []func(io.Reader) io.Reader{
			iotest.OneByteReader, iotest.DataErrReader, iotest.HalfReader, func(r io.Reader) io.Reader { return r },
		} {
			body := &closer{Reader: read(strings.NewReader(said))}
			b := WithEnd(body)
			got, err := io.ReadAll(iotest.OneByteReader(b))
			require.NoError(t, err)
			require.Equal(t, said+"\n\n", string(got))
			_, err = b.Read(make([]byte, 9))
			require.ErrorIs(t, err, io.EOF)
			require.NoError(t, b.Close())
			require.True(t, body.closed)
		}
	}
}

func TestWithEndDoesNotEndABodyThatFails(t *testing.T) {
	broken := errors.New("connection reset")
	for _, end := range []error{broken, io.ErrUnexpectedEOF} {
		got, err := io.ReadAll(WithEnd(io.NopCloser(io.MultiReader(strings.NewReader("data: x"), iotest.ErrReader(end)))))
		require.ErrorIs(t, err, end)
		require.Equal(t, "data: x", string(got))
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, test := range []struct {
		after, ms string
		want      time.Duration
	}{
		{"", "", 0},
		{"7", "", 7 * time.Second},
		{"0.5", "", 500 * time.Millisecond},
		{"7", "1500", 1500 * time.Millisecond},
		{"7", "0", 7 * time.Second},
		{"7", "soon", 7 * time.Second},
		{"", "0.25", 250 * time.Microsecond},
		{"0", "", 0},
		{"-7", "", 0},
		{"soon", "", 0},
		{"NaN", "NaN", 0},
		{"Inf", "", 1 << 62},
		{"-Inf", "", 0},
		{"1e30", "", 1 << 62},
		{"1e999", "", 0},
		{"99999999999999999999", "", 1 << 62},
		{"Fri, 02 Jan 2026 03:04:15 GMT", "", 10 * time.Second},
		{"Friday, 02-Jan-26 03:04:15 GMT", "", 10 * time.Second},
		{"Fri Jan  2 03:04:15 2026", "", 10 * time.Second},
		{"Fri, 02 Jan 2026 03:03:55 GMT", "", 0},
		{"Fri, 31 Dec 9999 23:59:59 GMT", "", math.MaxInt64},
		{"2026-01-02T03:04:15Z", "", 0},
	} {
		h := http.Header{}
		h.Set("Retry-After", test.after)
		h.Set("retry-after-ms", test.ms)
		require.Equal(t, test.want, RetryAfter(h, now), "%q %q", test.after, test.ms)
	}
	require.Zero(t, RetryAfter(nil, now))
}
