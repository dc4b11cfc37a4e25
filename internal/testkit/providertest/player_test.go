package providertest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// failing is a test that panics where a test would end.
type failing struct{ testing.TB }

func (failing) Errorf(string, ...any) {}
func (failing) FailNow()              { panic("failed") }

func TestPlayFailsBeforeItServesAnInvalidBody(t *testing.T) {
	var tape Exchange
	tape.Response.Body = "base64:!"
	require.PanicsWithValue(t, "failed", func() { Play(failing{t}, tape) })
}

func TestNormalGeminiAcceptsUnderscoresInARow(t *testing.T) {
	require.Equal(t, map[string]any{"fileData": 1.0, "contents": []any(nil)}, NormalGemini(t, `{"file__data_":1,"contents":[]}`))
}
