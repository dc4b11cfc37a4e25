package main

import (
	"strings"
	"testing"
	"testing/synctest"
)

const whole = `The recorded answers, with today's tools:
  same   stock{"item":"bolts"} → 40
  PARTED stock{"item":"nuts"} → ✗ nothing is called "nuts", recorded → 38
They part here:
◆ tools     stock
○ user      What do we have to order?
● assistant [2 calls wait] → stock(item: "bolts"), stock(item: "nuts")

The recorded results, with another model:
  the call was not recorded: stock{"item":"washer"}; the nearest is stock{"item":"washers"}
the first 3 nodes are the same
~ assistant 00000005 → 00000014
    call of stock
      {
    -   "item": "nuts"
    +   "item": "washer"
      }
= 1 node is the same
~ tool call 00000007 → 00000016
    call 1 of stock: as above
    result
    - 38
    failed result
    + the call was not recorded: stock{"item":"washer"}; the nearest is stock{"item":"washers"}
~ results   00000008 → 00000017
    result 1 of stock: as above
    failed result 1 of stock: as above
~ assistant 00000009 → 00000018
    call of stock
    - {
    -   "item": "washers"
    - }
    + Order washers.
- tool call 0000000a
    call 0 of stock: as above
    result
    - 7
- results   0000000b
    result 0 of stock: as above
- assistant 0000000c
    - Order nuts and washers.
= 1 node is the same
`

func TestTheRunsPartWhereATableHasChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		if err := run(t.Context(), &out); err != nil {
			t.Fatal(err)
		}
		if out.String() != whole {
			t.Errorf("it printed\n%s", out.String())
		}
	})
}
