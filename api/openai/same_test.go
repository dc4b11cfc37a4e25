package openai

import (
	"io"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// requireSame shows the difference only where there is one, because to show it takes long.
func requireSame(t testing.TB, want, got any) {
	t.Helper()
	if !reflect.DeepEqual(want, got) {
		require.Equal(t, want, got)
	}
}

func readAll(t testing.TB, r io.Reader) string {
	b, err := io.ReadAll(r)
	require.NoError(t, err)
	return string(b)
}
