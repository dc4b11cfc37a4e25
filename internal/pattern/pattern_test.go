package pattern_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/pattern"
)

func TestAPatternIsCompiledOnceWhenItIsFirstUsed(t *testing.T) {
	name := pattern.Of(`^[a-z]+$`)
	require.True(t, name().MatchString("weather"))
	require.Same(t, name(), name())

	wrong := pattern.Of(`(`)
	require.Panics(t, func() { wrong() })
}
