package main

import (
	"io/fs"
	"strings"
	"testing"
	"testing/synctest"
)

const whole = `○ user      Write the release note of: open is 2x faster.
◆ system    (agent) You write for users. Load a skill before a task that it is about: - bug-reports…
◆ tools     load_skill
● assistant → load_skill ×2
├─╮
▪ │ load_skill ✗ read ../../secrets/SKILL.md: invalid argument (name: "../../secrets")
│ ▪ load_skill(name: "release-notes") → # Writing release notes Begin with what the user gains, in…
├─╯
◇ results   2, 1 failed
● assistant Faster: a conversation opens twice as fast.
■ stop      end_turn · 2 turns · 2 tool calls
`

func TestSkillsAreLoadedWhenTheyAreNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // time stands still, so that no duration is printed
		skills, err := fs.Sub(embedded, "skills")
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := run(t.Context(), &out, skills); err != nil {
			t.Fatal(err)
		}
		if out.String() != whole {
			t.Errorf("it printed\n%s", out.String())
		}
	})
}
