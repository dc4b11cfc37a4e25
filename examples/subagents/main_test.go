package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
)

const whole = `reviewer                           Three pairs of eyes. → security → speed → style
reviewer › security                → advisories
reviewer › speed                   → read_file
reviewer › style                   → read_file
reviewer › security › advisories   CWE-208: a comparison that stops early tells how much of it was right.
reviewer › security › advisories   ■ 940 tokens, and 0 by those it asked
reviewer › security                The comparison leaks time (CWE-208), and the password is stored in plain text.
reviewer › security                ■ 510 tokens, and 940 by those it asked
reviewer › speed                   Nothing here is slow.
reviewer › speed                   ■ 435 tokens, and 0 by those it asked
reviewer › style                   It reads well.
reviewer › style                   ■ 455 tokens, and 0 by those it asked
reviewer                           Compare the password in constant time, and hash it first. Nothing else stands out.
reviewer                           ■ 1150 tokens, and 2340 by those it asked

○ user      Review login.go.
◆ tools     security, speed, style
● assistant Three pairs of eyes. → security, speed, style
├─┬─╮
▪ │ │ security(task: "Look at login.go.") 400ms → The comparison leaks time (CWE-208), and the pass…
│ │ │ ┊ ○ user      Look at login.go.
│ │ │ ┊ ◆ tools     advisories
│ │ │ ┊ ● assistant → advisories
│ │ │ ┊ ▪ advisories(task: "Look at login.go.") 200ms → CWE-208: a comparison that stops early tell…
│ │ │ ┊ │ ┊ ○ user      Look at login.go.
│ │ │ ┊ │ ┊ ● assistant CWE-208: a comparison that stops early tells how much of it was right.
│ │ │ ┊ │ ┊ ■ stop      end_turn · 1 turn · 940 tokens · 200ms
│ │ │ ┊ ◇ results   1
│ │ │ ┊ ● assistant The comparison leaks time (CWE-208), and the password is stored in plain text.
│ │ │ ┊ ■ stop      end_turn · 2 turns · 1 tool call · 510 tokens · 940 tokens in tools · 400ms
│ ▪ │ speed(task: "Look at login.go.") 450ms → Nothing here is slow.
│ │ │ ┊ ○ user      Look at login.go.
│ │ │ ┊ ◆ tools     read_file
│ │ │ ┊ ● assistant → read_file
│ │ │ ┊ ▪ read_file(name: "login.go") → if user.Password == password { return grant(user) }
│ │ │ ┊ ● assistant Nothing here is slow.
│ │ │ ┊ ■ stop      end_turn · 2 turns · 1 tool call · 435 tokens · 450ms
│ │ ▪ style(task: "Look at login.go.") 520ms → It reads well.
│ │ │ ┊ ○ user      Look at login.go.
│ │ │ ┊ ◆ tools     read_file
│ │ │ ┊ ● assistant → read_file
│ │ │ ┊ ▪ read_file(name: "login.go") → if user.Password == password { return grant(user) }
│ │ │ ┊ ● assistant It reads well.
│ │ │ ┊ ■ stop      end_turn · 2 turns · 1 tool call · 455 tokens · 520ms
├─┴─╯
◇ results   3
● assistant Compare the password in constant time, and hash it first. Nothing else stands out.
■ stop      end_turn · 2 turns · 3 tool calls · 1,150 tokens · 2,340 tokens in tools · 520ms

Drawn as `

// The clock is the test's own: no two agents say something at the same time, so their order is always the same.
func TestATreeOfAgents(t *testing.T) {
	drawing := filepath.Join(t.TempDir(), "made.mmd")
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		if err := run(t.Context(), &out, drawing); err != nil {
			t.Error(err)
		}
		if out.String() != whole+drawing+".\n" {
			t.Errorf("the program prints:\n%s", out.String())
		}
	})
	got, err := os.ReadFile(drawing)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := os.ReadFile("subagents.mmd")
	if err != nil || string(got) != string(kept) {
		t.Errorf("%v; the program draws what subagents.mmd is not:\n%s", err, got)
	}
}
