package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/plait-dev/plait/internal/testkit/goldentest"
)

// folderOfChild names the variable with the folder of a child process, in which the test binary is the program.
const folderOfChild = "PLAIT_EXAMPLE_CRASH_FOLDER"

func init() {
	folder := os.Getenv(folderOfChild)
	if folder == "" {
		return
	}
	if err := run(context.Background(), folder, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

const first = `the first start
looking up the price
charging the card: 30 euros
posting the letter
`

const second = `started again, with open calls:
  charge_card
  post_letter
in doubt: post_letter
charging the card: charged before, with this key

○ user      Order the lamp, and write to my aunt.
◆ tools     look_up_price, charge_card, post_letter
● assistant → look_up_price
▪ look_up_price() → 30 euros
● assistant → charge_card, post_letter
├─╮
▪ │ charge_card() → charged
│ ▪ post_letter ✗ in doubt: The outcome of this tool call is unknown: it was started, and the progr…
├─╯
◇ results   2, 1 failed
● assistant The lamp is paid. Please look whether the letter was posted: I cannot tell.
■ stop      end_turn · 1 turn · 2 tool calls
`

func TestTheSecondStartFinishesTheRun(t *testing.T) {
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	start := func() (string, error) {
		child := exec.CommandContext(t.Context(), binary)
		child.Env = append(os.Environ(), folderOfChild+"="+folder)
		out, err := child.CombinedOutput()
		return string(out), err
	}

	if out, err := start(); err == nil || out != first {
		t.Fatalf("the first start: %v\n%s", err, out)
	}
	out, err := start()
	if err != nil || goldentest.WithoutTimes(out) != second {
		t.Fatalf("the second start: %v\n%s", err, out)
	}
}
