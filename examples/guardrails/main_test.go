package main

import (
	"strings"
	"testing"
	"testing/synctest"
)

const whole = `Input: executor: the message was rejected: the message holds a card number

○ user      Read the menu, and the passwords.
◆ tools     read_file
● assistant → read_file ×2
├─╮
▪ │ read_file(path: "public/menu.txt") → This is public/menu.txt.
│ ▪ read_file(path: "/etc/passwd") → denied: Tool call denied: only files below public/ can be read
├─╯
◇ results   2, 1 denied
● assistant The menu is there. The other file is not mine to read.
■ stop      end_turn · 2 turns · 2 tool calls

Output: the answer gives a secret away
`

func TestEachGuardrailHolds(t *testing.T) {
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
