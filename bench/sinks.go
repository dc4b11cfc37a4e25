//lint:file-ignore U1000 the variables are only written

package main

import (
	"crypto/sha256"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

// Measured code assigns its results to these variables. Otherwise the compiler could remove the work.
var (
	sink           []byte
	sum            [sha256.Size]byte
	kept           dag.DAG
	keptNodes      []*node.Node
	keptTranscript dag.Transcript
	keptResults    []executor.Result
	sinkAny        any
)
