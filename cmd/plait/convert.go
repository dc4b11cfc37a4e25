package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plait-dev/plait/dag"
)

// importer reads a conversation that another program wrote. Its notes say what was kept as something else, or left out.
type importer struct {
	name string
	read func(data []byte, lenient bool) (d dag.DAG, notes []string, err error)
}

// importers are the formats, in the order in which they are listed.
func importers() []importer {
	var list []importer
	for _, e := range endpoints {
		list = append(list, importer{e.name, func(data []byte, _ bool) (dag.DAG, []string, error) {
			req, model, err := e.parse(data)
			if err != nil {
				return dag.DAG{}, nil, err
			}
			d := conversation(e.api, model, req)
			return d, nil, d.Err()
		}})
	}
	return append(list, transcripts()...)
}

func importCommand(s *streams) *cobra.Command {
	var from, output string
	var asJSON, lenient bool
	formats := importers()
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = f.name
	}
	cmd := &cobra.Command{
		Use:   "import --from FORMAT FILE",
		Short: "Make a conversation of what another program wrote",
		Long: "Reads FILE and writes a Plait conversation.\n\nFORMAT is one of\n\n  " + strings.Join(names, "\n  ") + `

The first four are bodies of requests. What such a body says beside the
conversation (the model, limits, …) is kept, and export and run use it again.

chat is messages of Chat Completions: a list, an object with "messages", or one
of either a line. claude-code and pi are sessions, as JSON lines; nano-agent is
a saved graph. Of several conversations in FILE the last one is gone on with;
the others are named conversation-2, conversation-3, …

What was kept as something else, changed or left out is told on standard error,
or with --json and -o as JSON.`,
		Example: `  plait import --from anthropic request.json -o talk.json
  plait import --from claude-code session.jsonl -o talk.json`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, f := range formats {
				if f.name == from {
					return s.importFile(f, args[0], output, lenient, asJSON)
				}
			}
			return fmt.Errorf("--from %q is none of %s", from, strings.Join(names, ", "))
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "the `FORMAT` of FILE")
	_ = cmd.MarkFlagRequired("from")
	_ = cmd.RegisterFlagCompletionFunc("from", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
	cmd.Flags().BoolVar(&lenient, "lenient", false, "go on after a line that cannot be read, in sessions and\nchat")
	outputFlag(cmd, &output)
	jsonFlag(cmd, &asJSON)
	return cmd
}

// importFile imports one file. With asJSON what came of it is told as JSON, where the conversation itself goes to a file.
func (s *streams) importFile(f importer, name, output string, lenient, asJSON bool) error {
	data, err := s.read(name)
	if err != nil {
		return err
	}
	d, notes, err := f.read(data, lenient)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := s.save(output, d); err != nil {
		return err
	}
	if asJSON && output != std {
		return s.printJSON(struct {
			Nodes    int      `json:"nodes"`
			Messages int      `json:"messages"`
			Heads    int      `json:"heads"`
			Notes    []string `json:"notes,omitempty"`
		}{d.Len(), len(d.Messages()), len(d.Heads()), notes})
	}
	for _, note := range notes {
		s.say("%s: %s", name, note)
	}
	return nil
}

func exportCommand(s *streams) *cobra.Command {
	var to, model, body string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "export --to API FILE",
		Short: "Print the body of the request that would be sent",
		Long: "Prints the body of the request that the conversation makes of API, one of\n\n  " + strings.Join(endpointNames(), "\n  ") + `

It is what run sends, but not streamed. How the conversation was changed to keep
the rules of the API is told on standard error. The model is the one of the
imported request, or the one that answered last, unless --model names another.`,
		Example: `  plait export --to gemini talk.json
  plait export --to anthropic talk.json --body '{"max_tokens": 500}'`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := endpointOf(to)
			if err != nil {
				return fmt.Errorf("--to %w", err)
			}
			d, err := s.load(args[0])
			if err != nil {
				return err
			}
			if d, err = withBody(d, e, model, body); err != nil {
				return err
			}
			return s.exportTo(e, d, model, asJSON)
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "the `API`")
	cmd.Flags().StringVar(&model, "model", "", "the `MODEL` that is asked")
	bodyFlag(cmd, &body)
	_ = cmd.MarkFlagRequired("to")
	_ = cmd.RegisterFlagCompletionFunc("to", cobra.FixedCompletions(endpointNames(), cobra.ShellCompDirectiveNoFileComp))
	jsonFlag(cmd, &asJSON)
	return cmd
}

// exportTo prints a body; with asJSON, in an object beside what was repaired.
func (s *streams) exportTo(e endpoint, d dag.DAG, model string, asJSON bool) error {
	how, err := manner(d, e, model)
	if err != nil && e.name != "gemini" { // whose bodies do not name it
		return err
	}
	how.whole = true
	body, repairs, err := e.body(request(d, e), how)
	if err != nil {
		return err
	}
	if asJSON {
		notes := []string{}
		for _, r := range repairs {
			notes = append(notes, r.String())
		}
		return s.printJSON(struct {
			Body    json.RawMessage `json:"body"`
			Repairs []string        `json:"repairs"`
		}{body, notes})
	}
	for _, r := range repairs {
		s.say("repaired: %s", r.String())
	}
	_, err = s.out.Write(append(bytes.TrimSpace(body), '\n'))
	return err
}
