package mcp

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOldestPausedRunIsDropped(t *testing.T) {
	s := &agentServer{}
	first := s.keep(pausedRun{})
	second := s.keep(pausedRun{})
	for range 999 {
		s.keep(pausedRun{})
	}
	_, found := s.take(first)
	require.False(t, found, "1,000 are kept")
	_, found = s.take(second)
	require.True(t, found)
	_, found = s.take(second)
	require.False(t, found, "a state is used once")

	kept := s.keep(pausedRun{})
	for range 2000 {
		s.take(s.keep(pausedRun{}))
	}
	_, found = s.take(kept)
	require.True(t, found, "runs that have continued do not count")
}
