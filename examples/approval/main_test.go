package main

import (
	"strings"
	"testing"
	"testing/synctest"
	"unicode"
)

// play runs the program with somebody who types these lines, on a clock that stands still.
func play(t *testing.T, typed ...string) (out string) {
	synctest.Test(t, func(t *testing.T) {
		var b strings.Builder
		if err := run(t.Context(), strings.NewReader(strings.Join(typed, "\n")), &b); err != nil {
			t.Error(err)
		}
		out = b.String()
	})
	return out
}

const whole = `
The agent wants to run

    delete_file {"path":"film-copy.mkv"}

allow, deny [why], or edit {other arguments}? 
The agent wants to run

    delete_file {"path":"thesis.odt"}

allow, deny [why], or edit {other arguments}? 
The agent wants to run

    delete_file {"path":"film*"}

allow, deny [why], or edit {other arguments}? Not understood. An edit looks like this: edit {"path": "some.txt"}
allow, deny [why], or edit {other arguments}? 
The agent wants to run

    delete_file {"path":"film.mkv\u202e\u001b[9Dold.log"}

allow, deny [why], or edit {other arguments}? 
No answer: denied.

◆ tools     list_files, delete_file
○ user      Make some room in my folder.
● assistant → list_files
▪ list_files() → ["film-copy.mkv","film.mkv","old.log","thesis.odt"]
● assistant These four can go. → delete_file ×4
├─┬─┬─╮
▪ │ │ │ delete_file(path: "film-copy.mkv") → deleted
│ ▪ │ │ delete_file(path: "thesis.odt") → denied: Tool call denied: I am still writing it
│ │ ▪ │ delete_file(path: "old.log") in place of delete_file(path: "film*") → deleted
│ │ │ ▪ delete_file(path: "film.mkv�\u001b[9Dold.log") → denied: Tool call denied: nobody was there…
├─┴─┴─╯
◇ results   4, 2 denied
● assistant I made what room I was allowed to.
■ stop      end_turn · 3 turns · 5 tool calls

Left in the folder: film.mkv, thesis.odt
`

func TestAllowDenyEditAndNoAnswer(t *testing.T) {
	out := play(t, "allow", "deny I am still writing it", "edit old.log", `edit {"path": "old.log"}`)
	if out != whole {
		t.Errorf("the terminal shows:\n%s", out)
	}
}

func TestNothingIsDeletedUnlessSomebodyAllowsIt(t *testing.T) {
	for _, typed := range [][]string{
		{},
		{"", "yes", "Allow", "allow all", "edit", "edit []"},
		{"deny", "deny", "deny because", " deny "},
		{`edit {"path": 7}`, `edit {"file": "old.log"}`, `edit {"path": "none"}`, "deny"},
	} {
		if out := play(t, typed...); !strings.HasSuffix(out, "Left in the folder: film-copy.mkv, film.mkv, old.log, thesis.odt\n") {
			t.Errorf("after %q:\n%s", typed, out)
		}
	}
}

func TestWhatIsShownIsHarmless(t *testing.T) {
	text := visible("a\x1b]0;x\a\r\n\u200b\u202e\u2066\U000e0041é漢\\")
	if want := `a\u001b]0;x\u0007\u000d\u000a\u200b\u202e\u2066\udb40\udc41é漢\`; text != want {
		t.Errorf("shown: %s", text)
	}
	for _, r := range play(t) {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Errorf("the terminal gets %U", r)
		}
	}
}
