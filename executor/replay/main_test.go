package replay_test

import (
	"log/slog"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // models of tests call tools that are not there all the time
	goleak.VerifyTestMain(m)
}
