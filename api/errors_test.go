package api_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
)

func TestErrorTextNamesKindStatusAndRequest(t *testing.T) {
	for want, err := range map[string]*api.Error{
		"anthropic: overloaded (529 overloaded_error): Overloaded [request req_1]": {Kind: api.ErrOverloaded, API: "anthropic", Status: 529,
			Type: "overloaded_error", Message: "Overloaded", RequestID: "req_1"},
		"connection failed: unexpected EOF":         {Kind: api.ErrTransport, Err: io.ErrUnexpectedEOF},
		"x: server error (500)":                     {Kind: api.ErrServer, API: "x", Status: 500},
		"x: server error (500): the words":          {Kind: api.ErrServer, API: "x", Status: 500, Message: "the words", Err: io.EOF},
		"failed":                                    {},
		"invalid request (400 a b): line 1 line 2":  {Kind: api.ErrInvalidRequest, Status: 400, Type: "a\nb", Message: "line 1\r\nline 2"},
		"content filtered: ␛[31mred [request r␀ x]": {Kind: api.ErrFiltered, Message: "\x1b[31mred", RequestID: "r\x00\u2028x"},
		"server error: bad \uFFFD bytes":            {Kind: api.ErrServer, Message: "bad \xff bytes"},
	} {
		require.Equal(t, want, err.Error())
	}
}

func TestErrorTextIsShortAndOneLine(t *testing.T) {
	e := &api.Error{Kind: api.ErrServer, Message: strings.Repeat("é\n", 1<<20), Err: errors.New(strings.Repeat("x", 1<<20))}
	require.Less(t, len(e.Error()), 2000)
	require.NotContains(t, e.Error(), "\n")
	require.Less(t, len((&api.Error{Kind: api.ErrServer, Err: e.Err}).Error()), 2000)
}

func TestErrorIsFoundByKindAndCause(t *testing.T) {
	e := &api.Error{Kind: api.ErrTransport, Err: fmt.Errorf("reading: %w", io.ErrUnexpectedEOF), RequestID: "r"}
	err := fmt.Errorf("asking: %w", e)
	require.ErrorIs(t, err, api.ErrTransport)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.NotErrorIs(t, err, api.ErrServer)
	var found *api.Error
	require.ErrorAs(t, err, &found)
	require.Equal(t, "r", found.RequestID)
	require.Empty(t, (&api.Error{}).Unwrap())
	require.NotErrorIs(t, &api.Error{}, api.ErrTransport)
}

func TestRetryable(t *testing.T) {
	require.True(t, api.Retryable(fmt.Errorf("x: %w", &api.Error{Kind: api.ErrCut})))
	require.True(t, api.Retryable(api.ErrRateLimited))
	require.False(t, api.Retryable(nil))
	require.False(t, api.Retryable(io.EOF))
	require.False(t, api.Retryable(&api.Error{}))
}
