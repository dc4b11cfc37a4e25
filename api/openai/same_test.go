package openai

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func readAll(t testing.TB, r io.Reader) string {
	b, err := io.ReadAll(r)
	require.NoError(t, err)
	return string(b)
}
