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

// load reads the conversation in a file.
func (s *streams) load(name string) (dag.DAG, error) {
	if name == std {
		return dag.Read(s.in)
	}
	return dag.Load(name)
}

// read reads a whole file.
func (s *streams) read(name string) ([]byte, error) {
	if name == std {
		return io.ReadAll(s.in)
	}
	return os.ReadFile(name)
}

// save writes the conversation to a file.
func (s *streams) save(name string, d dag.DAG) error {
	if name != std {
		return d.Save(name)
	}
	var whole bytes.Buffer // nothing is written of one that cannot be saved
	if err := d.Write(&whole); err != nil {
		return err
	}
	_, err := whole.WriteTo(s.out)
	return err
}

// oneFile is the arguments of a command that takes one FILE.
func oneFile(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%s takes one FILE, and was given %d arguments (see plait %s -h)", cmd.Name(), len(args), cmd.Name())
	}
	return nil
}

// outputFlag is where a command writes the conversation that it makes.
func outputFlag(cmd *cobra.Command, name *string) {
	cmd.Flags().StringVarP(name, "output", "o", std, "the `FILE` to write")
	_ = cmd.MarkFlagFilename("output", "json")
}

// bodyFlag is further members of a request's body.
func bodyFlag(cmd *cobra.Command, members *string) {
	cmd.Flags().StringVar(members, "body", "", "further members of the request's body, as a `JSON`\nobject, in place of those of the imported request")
}

func jsonFlag(cmd *cobra.Command, asked *bool) {
	cmd.Flags().BoolVar(asked, "json", false, "print JSON")
}
