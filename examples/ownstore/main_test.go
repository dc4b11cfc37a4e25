package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/store"
	"github.com/plait-dev/plait/store/storetest"
)

func TestTheStoreKeepsTheRulesOfDrivers(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Driver { return opened(t, ":memory:") })
}

func TestTheStoreHoldsWhatItHeldWhenItIsOpenedAgain(t *testing.T) {
	name := filepath.Join(t.TempDir(), "store.db")
	storetest.RunReopened(t, func(t *testing.T) store.Driver { return opened(t, name) })
}

func opened(t *testing.T, name string) store.Driver {
	db, err := open(t.Context(), name)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// TestAStoreOfOnesOwnTakes105Lines counts the lines of code of the driver, without imports.
func TestAStoreOfOnesOwnTakes105Lines(t *testing.T) {
	text, err := os.ReadFile("store.go")
	require.NoError(t, err)
	_, code, _ := strings.Cut(string(text), "// begin store\n")
	code, _, ended := strings.Cut(code, "// end store\n")
	require.True(t, ended)

	lines := 0
	for line := range strings.Lines(code) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			lines++
		}
	}
	require.Greater(t, lines, 60)
	require.LessOrEqual(t, lines, 105)
}

const whole = `○ user      What is a store?
● assistant Look at the manual.
■ stop      end_turn · 1 turn
○ user      And a head?
● assistant Look at the manual.
■ stop      end_turn · 1 turn
`

func TestAConversationGoesOnInATableOfOnesOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // time stands still, so that no duration is printed
		var out strings.Builder
		require.NoError(t, run(t.Context(), &out))
		require.Equal(t, whole, out.String())
	})
}
