package main

import "os"

func Example() {
	in, out, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	out.WriteString("yes\n")
	out.Close()
	stdin := os.Stdin
	os.Stdin = in
	defer func() { os.Stdin = stdin }()

	main()
	// Output:
	// send_mail {"to":"ada@example.com","text":"I am late."}? yes or no
	// ○ user      Tell Ada that I am late.
	// ◆ tools     send_mail
	// ● assistant → send_mail
	// ▪ send_mail(to: "ada@example.com", text: "I am late.") → sent to ada@example.com
	// ● assistant Done.
	// ■ stop      end_turn · 2 turns · 1 tool call
}
