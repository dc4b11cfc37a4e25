package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/dag"
)

// importer reads a file of another program. The notes list the parts changed, kept in another form or left out.
type importer struct {
	name string
	read func(data []byte) (d dag.DAG, notes []string, err error)
}

// importers returns all formats, in the order of the help text.
func importers() []importer {
	var list []importer
	for _, e := range endpoints {
		list = append(list, importer{e.name, func(data []byte) (dag.DAG, []string, error) {
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

// importerNames returns the names of the formats.
func importerNames() []string {
	var names []string
	for _, f := range importers() {
		names = append(names, f.name)
	}
	return names
}

func importCommand(s *streams) *cobra.Command {
	var from, output string
	formats, names := importers(), importerNames()
	cmd := &cobra.Command{
		Use:   "import --from FORMAT FILE",
		Short: "Convert another program's transcript to a conversation",
		Long: "Reads FILE and writes a Plait conversation.\n\nFORMAT is one of\n\n  " + strings.Join(names, "\n  ") + `

The first four are request bodies. Their other members (the model, limits, …)
are kept, and export and run use them again.

chat is messages of Chat Completions: a list, an object with "messages", or one
of either a line. claude-code, codex and pi are sessions, as JSON lines, and
opencode is what "opencode export" prints; nano-agent is a saved graph. Of
several conversations in FILE one is continued; the others get the refs
conversation-2, conversation-3, …

What was changed, left out or kept in another form is printed on standard error.
An incomplete last line, as in a session that is being written, is left out.`,
		Example: `  plait import --from anthropic request.json -o talk.json
  plait import --from claude-code session.jsonl -o talk.json`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(names, from) {
				return fmt.Errorf("--from %q is not one of %s", from, strings.Join(names, ", "))
			}

			data, err := s.read(args[0])
			if err != nil {
				return err
			}
			return s.importFile(formats[slices.Index(names, from)], args[0], data, output)
		},
	}

	cmd.Flags().StringVar(&from, "from", "", "the `FORMAT` of FILE")
	outputFlag(cmd, &output)
	return cmd
}

// importFile imports one file.
func (s *streams) importFile(f importer, name string, data []byte, output string) error {
	d, notes, err := f.read(data)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if d.Len() == 0 {
		return fmt.Errorf("%s: it has no content in the format %s; import accepts %s", name, f.name, strings.Join(importerNames(), ", "))
	}
	if err := s.save(output, d); err != nil {
		return err
	}

	for _, note := range notes {
		s.say("%s: %s", name, note)
	}
	return nil
}

func exportCommand(s *streams) *cobra.Command {
	var to, model, body, folder string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "export --to API FILE",
		Short: "Print the request that would be sent, or a session of another program",
		Long: "Prints the request body that run would send to API, not streamed. API is one of\n\n  " + strings.Join(endpointNames(), "\n  ") + `

Every change that the rules of the API require is printed on standard error, or
with --json beside the body. The model is that of the imported request, or of
the last response, unless --model names another.

Or API is a format of sessions:

  ` + strings.Join(sessionNames(), "\n  ") + `

Claude Code continues a session in its folder projects, Codex one in its folder
sessions, pi one that --session names, and OpenCode one that it has imported:
each in --folder. What a session cannot express is printed on standard error,
each kind under a code that stays the same.`,
		Example: `  plait export --to gemini talk.json
  plait export --to anthropic talk.json --body '{"max_tokens": 500}'
  plait export --to opencode --folder "$PWD" talk.json > session.json`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := s.load(args[0])
			if err != nil {
				return err
			}
			if isSession(to) {
				return s.exportSession(to, d, model, folder, asJSON)
			}
			e, err := endpointOf(to)
			if err != nil {
				return fmt.Errorf("--to %w", err)
			}
			if d, err = withBody(d, e, model, body); err != nil {
				return err
			}
			return s.exportTo(e, d, model, asJSON)
		},
	}

	cmd.Flags().StringVar(&to, "to", "", "the `API`")
	cmd.Flags().StringVar(&model, "model", "", "the `MODEL`; of a session also PROVIDER/MODEL")
	cmd.Flags().StringVar(&folder, "folder", "", "the `FOLDER` in which a session is continued")
	bodyFlag(cmd, &body)
	_ = cmd.MarkFlagRequired("to")
	jsonFlag(cmd, &asJSON)
	return cmd
}

// exportTo prints a request body. With asJSON it prints an object with the body and the repairs.
func (s *streams) exportTo(e endpoint, d dag.DAG, model string, asJSON bool) error {
	how, err := optionsFor(d, e, model)
	if err != nil && e.name != "gemini" { // a body for Gemini does not name the model
		return err
	}

	how.whole = true
	body, repairs, err := e.body(request(d, e), how)
	if err != nil {
		return err
	}

	notes := counted(repairs)
	if asJSON {
		return s.printJSON(struct {
			Body    json.RawMessage `json:"body"`
			Repairs []string        `json:"repairs"`
		}{body, notes})
	}

	for _, note := range notes {
		s.say("repaired: %s", note)
	}
	_, err = s.out.Write(append(bytes.TrimSpace(body), '\n'))
	return err
}

// counted returns each repair once, in order, with the number of times it was made.
func counted(repairs []api.RepairNote) []string {
	var log repairLog
	times := map[string]int{}
	for _, r := range repairs {
		log.add(r.String())
		times[r.String()]++
	}

	list := log.all()
	for i, text := range list {
		if n := times[text]; n > 1 {
			list[i] = fmt.Sprintf("%s (%d times)", text, n)
		}
	}
	return list
}
