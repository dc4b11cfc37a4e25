package fake_test

import (
	"testing"

	"go.uber.org/goleak"

	_ "github.com/plait-dev/plait/internal/testkit/quick"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
