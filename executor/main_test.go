package executor

import (
	"log/slog"
	"testing"

	_ "github.com/plait-dev/plait/internal/testkit/quick"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // models of tests call tools that are not there all the time
	goleak.VerifyTestMain(m)
}

// EncodeTask encodes a call that may also wait for approval.
var EncodeTask = ToolTaskCodec.encode
