package safetext

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzArmorIsReversed(f *testing.F) {
	for _, s := range []string{"", "call_1", "a\x00b", "\xff", "a\xc3", "\x1a", "\x1a00", "\x1a1a\x00", "\ufffd", "日本\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		armored := Armor(s)
		if !utf8.ValidString(armored) || strings.Contains(armored, "\x00") {
			t.Errorf("%q becomes %q", s, armored)
		}
		if got := Unarmor(armored); got != s {
			t.Errorf("%q comes back as %q", s, got)
		}
		Unarmor(s) // whatever a database holds
	})
}

func TestArmorKeepsUsualText(t *testing.T) {
	for _, s := range []string{"", "call_1", "toolu_01/a b", "日本", "\ufffd", "\n\t"} {
		if got := Armor(s); got != s {
			t.Errorf("%q becomes %q", s, got)
		}
	}
}
