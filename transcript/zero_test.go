package transcript_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/transcript"
)

func TestZeroImportIsAnEmptyConversation(t *testing.T) {
	main := transcript.Imported{}.Main()
	require.NoError(t, main.Err())
	require.Zero(t, main.Len())
}

func TestZeroOptionsAreTheDefaults(t *testing.T) {
	const file = `[{"role":"user","content":"Hello."},{"role":"assistant","content":"Hi."}]`
	zero, err := transcript.Import(transcript.Chat, strings.NewReader(file), &transcript.Options{})
	require.NoError(t, err)
	none, err := transcript.Import(transcript.Chat, strings.NewReader(file), nil)
	require.NoError(t, err)
	require.Equal(t, "Hi.", zero.Main().Text())
	require.Equal(t, none.Main().Len(), zero.Main().Len())
	require.Equal(t, none.Notes, zero.Notes)
}

func TestZeroFormatIsUnknown(t *testing.T) {
	_, err := transcript.Import("", strings.NewReader("[]"), nil)
	require.ErrorIs(t, err, transcript.ErrUnknownFormat)
}
