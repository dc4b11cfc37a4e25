package sessions_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/dag/sessions"
)

func TestZeroImportIsAnEmptyConversation(t *testing.T) {
	main := sessions.Imported{}.Main()
	require.NoError(t, main.Err())
	require.Zero(t, main.Len())
}

func TestZeroOptionsAreTheDefaults(t *testing.T) {
	file := piSays(`{"role":"user","content":"Hello."}`, `{"role":"assistant","content":[{"type":"text","text":"Hi."}]}`)
	zero, err := sessions.Import(sessions.Pi, strings.NewReader(file), &sessions.Options{})
	require.NoError(t, err)
	none, err := sessions.Import(sessions.Pi, strings.NewReader(file), nil)
	require.NoError(t, err)
	require.Equal(t, "Hi.", zero.Main().Text())
	require.Equal(t, none.Main().Len(), zero.Main().Len())
	require.Equal(t, none.Notes, zero.Notes)
}

func TestZeroFormatIsUnknown(t *testing.T) {
	_, err := sessions.Import("", strings.NewReader("[]"), nil)
	require.ErrorIs(t, err, sessions.ErrUnknownFormat)
}
