package goldentest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/testkit/goldentest"
)

func TestWithoutTimesKeepsAllElse(t *testing.T) {
	for log, want := range map[string]string{
		`▪ f(x: 1) 2ms → 30 minutes`:              `▪ f(x: 1) → 30 minutes`,
		`■ stop      end_turn · 1 turn · 1.5s`:    `■ stop      end_turn · 1 turn`,
		`■ stop      end_turn · 2m5s`:             `■ stop      end_turn`,
		`■ stop      2 turns · 1h0m1s`:            `■ stop      2 turns`,
		`● assistant 2 messages at 10.5m, 3rooms`: `● assistant 2 messages at 10.5m, 3rooms`,
	} {
		require.Equal(t, want, goldentest.WithoutTimes(log))
	}
}
