package main

import (
	"encoding/json"
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/plait-dev/plait/internal/safetext"
)

// newRoot returns the whole command.
func newRoot(s *streams) *cobra.Command {
	build, _ := debug.ReadBuildInfo() // nil without module support
	root := &cobra.Command{
		Use:   "plait",
		Short: "Work with saved conversations of LLM agents",
		Long: `plait works with saved conversations of LLM agents: graphs of the messages of
the system, the user, the assistant and tools.

A FILE is a conversation that Plait saved; - is standard input or output, and
sessions.db#KEY a conversation in an SQLite database (see list). NODE is a ref
(see fork), or a node ID, or 4 or more digits of its beginning or end.

Results go to standard output; notes, repairs and progress to standard error.

Exit codes:
  0  done
  1  a negative finding: verify failed, or diff found differences
  2  bad usage or input, or a run that failed
  3  the run is paused: the pending calls are printed as JSON
  4  calls that were open in FILE need approval, and there is no terminal to ask
     at: nothing was executed, sent or saved`,
		Example: `  plait import --from anthropic request.json -o talk.json
  plait log talk.json
  plait run talk.json --provider anthropic --defer-tools
  plait resume talk.json --results results.json`,
		Version:       versionOf(build),
		SilenceErrors: true,
		SilenceUsage:  true,
	}

	// The groups and commands are in the order of the help text.
	for _, group := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Convert:", []*cobra.Command{importCommand(s), exportCommand(s)}},
		{"Look:", []*cobra.Command{
			listCommand(s), logCommand(s), showCommand(s), renderCommand(s), serveCommand(s), diffCommand(s), verifyCommand(s),
			reportCommand(s),
		}},
		{"Change:", []*cobra.Command{forkCommand(s), compactCommand(s), pruneCommand(s), redactCommand(s), eraseCommand(s)}},
		{"Run:", []*cobra.Command{chatCommand(s), acpCommand(s), runCommand(s), resumeCommand(s), runsCommand(s), mcpCommand(s)}},
	} {
		root.AddGroup(&cobra.Group{ID: group.title, Title: group.title})
		for _, cmd := range group.commands {
			cmd.GroupID = group.title
			root.AddCommand(cmd)
		}
	}

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
	fmt.Fprintln(s.err, safetext.Block(fmt.Sprintf(format, args...)))
}
