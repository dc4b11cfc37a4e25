package mcp

import (
	"context"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

func TestEndOfAnOldConnectionKeepsTheNewOne(t *testing.T) {
	server := sdk.NewServer(&sdk.Implementation{Name: "s", Version: "v1"}, nil)
	s, err := Connect(t.Context(), func() (sdk.Transport, error) {
		ours, theirs := sdk.NewInMemoryTransports()
		_, err := server.Connect(context.Background(), theirs, nil)
		return ours, err
	}, nil)
	require.NoError(t, err)
	defer s.Close()

	old, err := s.connected(t.Context())
	require.NoError(t, err)
	s.retire(old)
	now, err := s.connected(t.Context())
	require.NoError(t, err)
	require.NotSame(t, old, now)

	s.drop(old, nil)
	same, err := s.connected(t.Context())
	require.NoError(t, err)
	require.Same(t, now, same)
	require.NoError(t, now.ctx.Err(), "its calls go on")
}
