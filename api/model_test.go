package api_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
)

// named is a provider with a model.
type named struct{ *apitest.Script }

func (named) Model() string { return "m-1" }

func TestModelOfAProviderIsThatOfTheWrappedOne(t *testing.T) {
	p := named{apitest.NewScript()}
	require.Equal(t, "m-1", api.ModelOf(p))
	require.Equal(t, "m-1", api.ModelOf(api.NewClient(p, nil)))
	require.Equal(t, "m-1", api.ModelOf(api.With(p, api.Options{})))
	require.Equal(t, "m-1", api.ModelOf(api.With(api.NewClient(p, nil), api.Options{})))
	require.Empty(t, api.ModelOf(p.Script))
}
