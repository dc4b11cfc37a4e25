package main

import (
	"bytes"
	"fmt"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/dag/sessions"
)

// transcripts are the formats of whole conversations.
func transcripts() []importer {
	var list []importer
	for _, f := range sessions.Formats() {
		list = append(list, importer{name: string(f), read: func(data []byte, lenient bool) (dag.DAG, []string, error) {
			in, err := sessions.Import(f, bytes.NewReader(data), &sessions.Options{Lenient: lenient})
			if err != nil {
				return dag.DAG{}, nil, err
			}
			d, notes := inOneFile(in)
			for _, note := range in.Notes {
				notes = append(notes, note.String())
			}
			return d, notes, nil
		}})
	}
	return list
}

// inOneFile returns one conversation with all imported nodes. Its head is the head of the main conversation. The heads
// of the others get refs.
func inOneFile(in sessions.Imported) (d dag.DAG, notes []string) {
	// A ref is made of the heads, so each conversation's heads become those of d for a moment.
	d = in.DAG
	for i, other := range in.Conversations {
		if i > 0 {
			d = d.WithHeads(other.Heads()...).WithRef(fmt.Sprintf("conversation-%d", i+1))
		}
	}

	if n := len(in.Conversations); n == 2 {
		notes = append(notes, "the second conversation has the ref conversation-2")
	} else if n > 2 {
		notes = append(notes, fmt.Sprintf("%d further conversations have the refs conversation-2 to conversation-%d", n-1, n))
	}

	return d.WithHeads(in.Main().Heads()...), notes
}
