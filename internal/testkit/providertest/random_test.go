package providertest

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
)

// simple is an API that takes every text but one.
func simple(refused string) *Dialect {
	some := []content.JSON{"{}"}
	return &Dialect{
		API: "simple", Thought: content.Thinking{Text: "Hm."}, Thoughts: []content.Block{content.Thinking{}},
		Extras: some, ToolExtras: some, ServerTools: some, Opaque: some,
		Served: func(*World) []content.Block { return []content.Block{content.Text{Text: "Found it."}} },
		Asked: func(*World) Asked {
			return Asked{
				With: "no options",
				Body: func(req api.Request) ([]byte, error) {
					return json.Marshal(append([]content.Message{}, req.Messages...))
				},
				Check: func(body []byte) error {
					if refused != "" && bytes.Contains(body, []byte(refused)) {
						return errors.New("refused")
					}
					return nil
				},
			}
		},
	}
}

func TestRandomConversationsFindWhatIsRefused(t *testing.T) {
	for seed := range uint64(200) {
		require.NoError(t, simple("").Try(seed), "seed %d", seed)
		err := simple("Found it.").Try(seed)
		if err == nil {
			continue
		}
		require.ErrorContains(t, err, "after step 1: refused\n1. a server tool's turn\nwith no options\nsent ")
		require.Equal(t, 4, strings.Count(err.Error(), "\n"), "one step is enough:\n%v", err)
		return
	}
	t.Fatal("nothing was found")
}
