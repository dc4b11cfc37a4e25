package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/plait-dev/plait/dag"
)

// The second start continues what the first one saved.
func TestConversationGoesOnAtTheNextStart(t *testing.T) {
	t.Chdir(t.TempDir())
	main()
	main()

	d, err := dag.Load("talk.json")
	if err != nil || len(d.Messages()) != 4 || d.Text() != "It is noon." {
		t.Fatal(d, err)
	}
	picture, err := os.ReadFile("talk.svg")
	if err != nil || bytes.Count(picture, []byte("What time is it?")) < 2 {
		t.Fatal(err, "the picture does not show both questions")
	}
}
