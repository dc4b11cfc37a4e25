package main

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
)

const whole = `1. Vienna.
2. Arr, Lisbon!
3. Kyoto, because it is warm and not yet humid.
The judge picks 3.

○ user      Which city should I visit in May?
◆ system    (style) Answer with a reason.
● assistant Kyoto, because it is warm and not yet humid.
■ stop      end_turn · 1 turn
▣ sub-graph Answer in one word. → Vienna.
│ ┊ ⋮
│ ┊ ◆ system    (style) Answer in one word.
│ ┊ ● assistant Vienna.
│ ┊ ■ stop      end_turn · 1 turn
▣ sub-graph Answer like a pirate. → Arr, Lisbon!
│ ┊ ⋮
│ ┊ ◆ system    (style) Answer like a pirate.
│ ┊ ● assistant Arr, Lisbon!
│ ┊ ■ stop      end_turn · 1 turn
○ user      And in June?
● assistant Tallinn, because its nights are white then.
■ stop      end_turn · 1 turn
`

func TestTheJudgesChoiceIsContinued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // time stands still, so that no duration is printed
		var out strings.Builder
		if err := run(t.Context(), &out, filepath.Join(t.TempDir(), "branches.json")); err != nil {
			t.Fatal(err)
		}
		if out.String() != whole {
			t.Errorf("it printed\n%s", out.String())
		}
	})
}
