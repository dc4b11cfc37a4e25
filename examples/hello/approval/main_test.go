package main

import (
	"bytes"
	"io"
	"os"
	"regexp"
	"testing"
)

// spent is a time in the log of a run that took long.
var spent = regexp.MustCompile(` · [0-9.]+m?s\n`)

func TestPersonAllowsAndTheRunGoesOn(t *testing.T) {
	in, answer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	answer.WriteString("yes\n")
	answer.Close()
	printed, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdin, stdout := os.Stdin, os.Stdout
	os.Stdin, os.Stdout = in, out
	defer func() { os.Stdin, os.Stdout = stdin, stdout }()

	main()
	out.Close()
	text, err := io.ReadAll(printed)
	if err != nil {
		t.Fatal(err)
	}
	if got := spent.ReplaceAll(text, []byte("\n")); string(bytes.TrimSpace(got)) != want {
		t.Fatalf("it printed\n%s", text)
	}
}

const want = `send_mail {"to":"ada@example.com","text":"I am late."}? yes or no
○ user      Tell Ada that I am late.
◆ tools     send_mail
● assistant → send_mail
▪ send_mail(to: "ada@example.com", text: "I am late.") → sent to ada@example.com
● assistant Done.
■ stop      end_turn · 2 turns · 1 tool call`
