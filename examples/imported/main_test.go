package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
)

const whole = `line 1: record: claude-code.file-history-snapshot
line 7: record: claude-code.progress
line 11: record: claude-code.system.turn_duration
line 20: record: claude-code.system.compact_boundary
line 23: record: claude-code.summary

▫ record    claude-code.file-history-snapshot type: file-history-snapshot, messageId: 00000000-0000…
○ user      Which beds need water?
● assistant I read both lists. → Read ×2
├─╮
▪ │ Read(file_path: "beds.txt") → roses, beans
│ ▪ Read ✗ no such file (file_path: "rain.txt")
├─╯
◇ results   2, 1 failed
▫ record    claude-code.progress parentUuid: 00000000-0000-4000-8000-000000000004, isSidechain: fal…
● assistant The roses, I think.
○ user      Ask somebody who knows.
● assistant → Task
▪ Task(description: "Ask", prompt: "When do beans need water?", sub… → When two fingers deep is dry.
│ ┊ ○ user      When do beans need water?
│ ┊ ● assistant When two fingers deep is dry.
◇ results   1
● assistant Feel the soil first.
▫ record    claude-code.system.compact_boundary parentUuid: null, isSidechain: false, userType: ext…
≡ compaction of 8 nodes: Kim asked about watering; the soil tells when.
○ user      Thanks. Write it down.
▫ record    claude-code.summary type: summary, summary: Watering the garden, leafUuid: 00000000-000…

0 findings
`

func TestSessionIsReadAndDrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // time stands still, so that no duration is printed
		var out strings.Builder
		if err := run(&out, bytes.NewReader(example), filepath.Join(t.TempDir(), "session.html")); err != nil {
			t.Fatal(err)
		}
		if out.String() != whole {
			t.Errorf("it printed\n%s", out.String())
		}
	})
}
