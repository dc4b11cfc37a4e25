//lint:file-ignore U1000 the variables are only written

package main

import (
	"crypto/sha256"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

// Results of what is measured are assigned to these variables, so that the compiler does not leave the work out.
var (
	sink           []byte
	sum            [sha256.Size]byte
	kept           dag.DAG
	keptNodes      []*node.Node
	keptTranscript dag.Transcript
	keptResults    []executor.Result
	sinkAny        any
)
