package main

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/plait-dev/plait/dag"
)

// std is the name of standard input and output.
const std = "-"

// load reads the conversation in a file or a database.
func (s *streams) load(name string) (dag.DAG, error) { return s.loadWith(dag.Loader{}, name) }

// glance is load for a command that looks at few nodes of a conversation. They are decoded when they are looked at:
// after that, check the conversation's Err.
func (s *streams) glance(name string) (dag.DAG, error) {
	return s.loadWith(dag.Loader{Lazy: true}, name)
}

func (s *streams) loadWith(l dag.Loader, name string) (dag.DAG, error) {
	if name == std {
		return l.Read(s.in)
	}
	if stored(name) {
		c, err := s.conversation(name, false)
		if err != nil {
			return dag.DAG{}, err
		}
		return c.DAG(), nil
	}
	return l.Load(name)
}

// read reads a whole file.
func (s *streams) read(name string) ([]byte, error) {
	if name == std {
		return io.ReadAll(s.in)
	}
	return os.ReadFile(name)
}

// save writes the conversation to a file or a database.
func (s *streams) save(name string, d dag.DAG) error {
	if stored(name) {
		return s.append(name, d)
	}
	if name != std {
		return d.Save(name)
	}

	// Encode all of it first, so that nothing is written if it cannot be saved.
	var whole bytes.Buffer
	if err := d.Write(&whole); err != nil {
		return err
	}
	_, err := whole.WriteTo(s.out)
	return err
}

// oneFile is the cobra.PositionalArgs of a command with one FILE.
func oneFile(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%s takes one FILE, got %d arguments (see plait %s -h)", cmd.Name(), len(args), cmd.Name())
	}
	return nil
}

// outputFlag registers the flag for the file to which a command writes a conversation.
func outputFlag(cmd *cobra.Command, name *string) {
	cmd.Flags().StringVarP(name, "output", "o", std, "the `FILE` to write")
	_ = cmd.MarkFlagFilename("output", "json")
}

// bodyFlag registers the flag for further members of a request's body.
func bodyFlag(cmd *cobra.Command, members *string) {
	cmd.Flags().StringVar(members, "body", "", "further members of the request's body, as a `JSON`\nobject, in place of those of the imported request")
}

// jsonFlag registers the flag for JSON output.
func jsonFlag(cmd *cobra.Command, asJSON *bool) {
	cmd.Flags().BoolVar(asJSON, "json", false, "print JSON")
}
