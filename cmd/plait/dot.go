package main

import (
	"fmt"

	"gonum.org/v1/gonum/graph/encoding/dot"

	"github.com/plait-dev/plait/dag"
)

// dot prints the graph for Graphviz, by gonum's encoder.
func (s *streams) dot(d dag.DAG) error {
	text, err := dot.Marshal(d.Graph(), "plait", "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(s.out, string(text))
	return err
}
