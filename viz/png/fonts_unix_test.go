//go:build linux || darwin

package png

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAPipeWithTheNameOfAFontIsNotRead(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "DejaVuSansMono.ttf")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	require.Nil(t, readFont(pipe))
}
