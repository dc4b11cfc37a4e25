package main

import (
	"strings"
	"testing"
	"testing/synctest"
)

const whole = `user       Translate all five chapters.
           (and has this ready for the end: Thank you! What would be a good French title?)
assistant  I begin with the first.
  begin    translate {"chapter":1}
  end      chapter 1 is in French now
  begin    translate {"chapter":2}
           (the user, meanwhile: Stop after this one, I rewrote the others.)
  end      chapter 2 is in French now
  begin    translate {"chapter":3}
  end      Skipped due to queued user message.
  begin    translate {"chapter":4}
  end      Skipped due to queued user message.
  begin    translate {"chapter":5}
  end      Skipped due to queued user message.
user       Stop after this one, I rewrote the others.
assistant  Two chapters are translated. I leave the other three alone.
user       Thank you! What would be a good French title?
assistant  "Le fil du temps".

◆ tools     translate
○ user      Translate all five chapters.
● assistant I begin with the first. → translate ×5
├─┬─┬─┬─╮
▪ │ │ │ │ translate(chapter: 1) 500ms → chapter 1 is in French now
│ ▪ │ │ │ translate(chapter: 2) 500ms → chapter 2 is in French now
│ │ ▪ │ │ translate ✗ Skipped due to queued user message. (chapter: 3)
│ │ │ ▪ │ translate ✗ Skipped due to queued user message. (chapter: 4)
│ │ │ │ ▪ translate ✗ Skipped due to queued user message. (chapter: 5)
├─┴─┴─┴─╯
◇ results   5, 3 failed
○ user      Stop after this one, I rewrote the others.
● assistant Two chapters are translated. I leave the other three alone.
○ user      Thank you! What would be a good French title?
● assistant "Le fil du temps".
■ stop      end_turn · 3 turns · 5 tool calls · 1s
`

// The clock is the test's own, so that nobody waits and every time is exact.
func TestTheOrderInWhichThingsAreSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		if err := run(t.Context(), &out); err != nil {
			t.Error(err)
		}
		if out.String() != whole {
			t.Errorf("the program prints:\n%s", out.String())
		}
	})
}
