package main

import (
	"os"
	"strings"
	"testing"

	_ "github.com/plait-dev/plait/internal/testkit/quick"
)

const sixty = `                  results    tokens sent   cached    price
anthropic         all             966989      96%     0.38
anthropic         edited          705125      94%     0.32
openai-responses  all             925793      96%     0.36
openai-responses  edited          676131      94%     0.30
openai-chat       all             927901      96%     0.36
openai-chat       edited          678247      94%     0.30
gemini            all             927855      96%     0.36
gemini            edited          678193      94%     0.30

                  tools      tokens sent   cached    price
anthropic         all             702216      91%     0.37
anthropic         found            19085      88%     0.01
openai-responses  all             194594      91%     0.10
openai-responses  found            18756      89%     0.01
openai-chat       all             193762      91%     0.10
openai-chat       found            18646      89%     0.01
gemini            all             712760      91%     0.38
gemini            found            18057      89%     0.01
`

const threeHundred = `                  results    tokens sent   cached    price
anthropic         all           23696410      99%     7.53
anthropic         edited         6806442      96%     2.62
openai-responses  all           22653334      99%     7.20
openai-responses  edited         6434507      96%     2.48
openai-chat       all           22712962      99%     7.22
openai-chat       edited         6494166      96%     2.50
gemini            all           22730796      99%     7.23
gemini            edited         6511915      96%     2.51

                  tools      tokens sent   cached    price
anthropic         all             702216      91%     0.37
anthropic         found            19085      88%     0.01
openai-responses  all             194594      91%     0.10
openai-responses  found            18756      89%     0.01
openai-chat       all             193762      91%     0.10
openai-chat       found            18646      89%     0.01
gemini            all             712760      91%     0.38
gemini            found            18057      89%     0.01
`

// TestLessIsSentToEachAPI reads 300 pages with PLAIT_LONG=1, and 60 otherwise.
func TestLessIsSentToEachAPI(t *testing.T) {
	pages, want := 60, sixty
	if os.Getenv("PLAIT_LONG") != "" {
		pages, want = 300, threeHundred
	}
	var out strings.Builder
	if err := run(t.Context(), &out, pages); err != nil {
		t.Fatal(err)
	}
	if out.String() != want {
		t.Errorf("it printed\n%s", out.String())
	}
}
