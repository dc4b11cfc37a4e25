package providertest

import (
	"reflect"
	"testing"

	json "github.com/goccy/go-json/v2"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/jsonx"
)

// RequireSame is a faster require.Equal: it computes a diff only if the values differ.
func RequireSame(t testing.TB, want, got any) {
	t.Helper()
	if !reflect.DeepEqual(want, got) {
		require.Equal(t, want, got)
	}
}

func decodedBody(t testing.TB, body string) map[string]any {
	t.Helper()
	var r map[string]any
	require.NoError(t, json.Unmarshal([]byte(body), &r, jsonx.Lenient), body)
	return r
}
