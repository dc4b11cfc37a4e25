package progress

import (
	"io"
	"iter"

	"github.com/plait-dev/plait/executor"
)

// OnTerminal is Watch for an output that counts as a terminal.
func OnTerminal(w io.Writer, events iter.Seq2[executor.Event, error], o *Options) iter.Seq2[executor.Event, error] {
	return watch(w, events, o, true)
}
