package web

import (
	"crypto/sha256"
	"encoding/base64"
	"html"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestThePolicyOfAReportAllowsItsScriptAndStyle hashes the elements of the page as a browser does.
func TestThePolicyOfAReportAllowsItsScriptAndStyle(t *testing.T) {
	var b strings.Builder
	require.NoError(t, WriteReport(&b, "Runs", []int{}))
	policy := html.UnescapeString(b.String())
	for _, element := range []string{"script", "style"} {
		_, rest, found := strings.Cut(b.String(), "<"+element+">")
		require.True(t, found, element)
		inside, _, _ := strings.Cut(rest, "</"+element+">")
		sum := sha256.Sum256([]byte(inside))
		require.Contains(t, policy, element+"-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
	}
	require.NotContains(t, policy, "connect-src")
}
