package main

import (
	"strings"
	"testing"
	"testing/synctest"
)

const whole = `sums     100 of 100
products  60 of 100
40 failures, the first:
  6 × 0: it is 0, not 6
  7 × 0: it is 0, not 7
  8 × 0: it is 0, not 8
`

func TestFailuresAreCountedByTopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // time stands still, so that no duration is printed
		var out strings.Builder
		if err := run(t.Context(), &out); err != nil {
			t.Fatal(err)
		}
		if out.String() != whole {
			t.Errorf("it printed\n%s", out.String())
		}
	})
}
