package store_test

import (
	"testing"

	"github.com/plait-dev/plait/store"
	"github.com/plait-dev/plait/store/storetest"
)

func TestMemoryKeepsTheRulesOfDrivers(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Driver { return store.Memory() })
}
