package sessions_test

import (
	"fmt"
	"log"
	"os"

	"github.com/plait-dev/plait/dag/sessions"
)

func Example() {
	file, err := os.Open("testdata/claude-code.jsonl")
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	in, err := sessions.Import(sessions.ClaudeCode, file, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(in.Main())
	for _, m := range in.Main().Messages() {
		fmt.Println(m.Role, m.Blocks.Text())
	}
	fmt.Println(len(in.Conversations), "conversations; the other one:", in.Conversations[1].Text())
	for _, note := range in.Notes {
		fmt.Println(note)
	}
	// Output:
	// ▫ record    claude-code.file-history-snapshot type: file-history-snapshot, messageId: 00000000-0000…
	// ○ user      Which beds need water?
	// ● assistant I read both lists. → Read ×2
	// ├─╮
	// ▪ │ Read(file_path: "beds.txt") → roses, beans
	// │ ▪ Read ✗ no such file (file_path: "rain.txt")
	// ├─╯
	// ◇ results   2, 1 failed
	// ▫ record    claude-code.progress parentUuid: 00000000-0000-4000-8000-000000000004, isSidechain: fal…
	// ● assistant The roses, I think.
	// ○ user      Ask somebody who knows.
	// ● assistant → Task
	// ▪ Task(description: "Ask", prompt: "When do beans need water?", sub… → When two fingers deep is dry.
	// │ ┊ ○ user      When do beans need water?
	// │ ┊ ● assistant When two fingers deep is dry.
	// ◇ results   1
	// ● assistant Feel the soil first.
	// ▫ record    claude-code.system.compact_boundary parentUuid: null, isSidechain: false, userType: ext…
	// ≡ compaction of 8 nodes: Kim asked about watering; the soil tells when.
	// ○ user      Thanks. Write it down.
	// ▫ record    claude-code.summary type: summary, summary: Watering the garden, leafUuid: 00000000-000…
	// user Kim asked about watering; the soil tells when.
	// user Thanks. Write it down.
	// 2 conversations; the other one: Tomorrow.
	// line 1: record: claude-code.file-history-snapshot
	// line 7: record: claude-code.progress
	// line 11: record: claude-code.system.turn_duration
	// line 20: record: claude-code.system.compact_boundary
	// line 23: record: claude-code.summary
}
