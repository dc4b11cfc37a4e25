package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/spf13/cobra"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/describe"
)

// std is the name of standard input and output.
const std = "-"

// load reads the conversation in a file or a database.
func (s *streams) load(name string) (dag.DAG, error) { return s.loadWith(dag.Loader{}, name) }

// glance is load for a command that looks at few nodes. They are decoded on first use: after that, check the
// conversation's Err.
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

	// Encode all of it first: if it cannot be saved, nothing is written.
	var whole bytes.Buffer
	if err := d.Write(&whole); err != nil {
		return err
	}
	_, err := whole.WriteTo(s.out)
	return err
}

// takes returns the cobra.PositionalArgs for least to most arguments. The error text names them as what.
func takes(what string, least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return fmt.Errorf("%s takes %s, got %s (see %s -h)",
				cmd.Name(), what, describe.Count(len(args), "argument"), cmd.CommandPath())
		}
		return nil
	}
}

var (
	oneFile   = takes("one FILE", 1, 1)
	someFiles = takes("at least one FILE", 1, math.MaxInt)
)

// outputFlag registers the flag for the output file of a conversation.
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
