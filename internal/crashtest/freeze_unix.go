//go:build unix

package crashtest

import (
	"os"
	"os/signal"
	"syscall"
)

// awaitThaw calls ready, waits for somebody to freeze this process, and returns when it continues. The process does not
// stop itself: the signal would reach it later than the next lines.
func awaitThaw(ready func()) {
	thawed := make(chan os.Signal, 1)
	signal.Notify(thawed, syscall.SIGCONT)
	defer signal.Stop(thawed)
	ready()
	<-thawed
}

// freeze stops a process.
func freeze(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

// thaw continues a frozen process.
func thaw(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
