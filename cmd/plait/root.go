package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
)

// newRoot is the whole command.
func newRoot(s *streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "plait",
		Short: "Work with saved conversations of LLM agents",
		Long: `plait works with saved conversations of LLM agents: graphs of system, user, assistant and tool nodes.

A FILE is a conversation that Plait saved; "-" is standard input or output. NODE is the id of a node or the beginning of
its id or digest, or the name of a head.

Exit codes: 0 done; 1 a negative finding (verify failed, or there are differences); 2 bad usage or bad input; 3 the run is
paused, and the calls that wait are printed as JSON.`,
		Example: `  plait import --from anthropic request.json -o talk.json
  plait log talk.json
  plait render --as mermaid talk.json > talk.mmd
  plait run talk.json --provider anthropic --model claude-sonnet-4-5 --defer-tools
  plait resume talk.json --results results.json --provider anthropic --model claude-sonnet-4-5`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(
		importCommand(s), exportCommand(s), logCommand(s), showCommand(s), renderCommand(s), diffCommand(s), verifyCommand(s),
		forkCommand(s), mergeCommand(s), pruneCommand(s), redactCommand(s), runCommand(s), resumeCommand(s),
	)
	return root
}

// printJSON writes v as indented JSON.
func (s *streams) printJSON(v any) error {
	enc := json.NewEncoder(s.out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// say writes a line to standard error.
func (s *streams) say(format string, args ...any) {
	fmt.Fprintln(s.err, printable(fmt.Sprintf(format, args...)))
}
