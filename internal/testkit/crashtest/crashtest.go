// Package crashtest kills processes that append to a store, and compares what they acknowledged with what is stored.
//
// The processes are the test binary, started again by itself. TestMain begins with [Main], which does not return in
// such a process:
//
//	func TestMain(m *testing.M) {
//		crashtest.Main(open)
//		os.Exit(m.Run())
//	}
//
//	func TestAcknowledgedAppendsSurviveKills(t *testing.T) {
//		crashtest.Appends{Open: open, Database: database}.Test(t)
//	}
package crashtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/store"
)

// Store is a store with methods to check and close it.
type Store interface {
	store.Driver
	Check(ctx context.Context) error
	Close() error
}

// Open opens the database at an address, such as a path or a URL.
type Open func(ctx context.Context, address string) (Store, error)

// The environment of a process started by a test.
const (
	roleVariable    = "PLAIT_CRASHTEST_ROLE"
	addressVariable = "PLAIT_CRASHTEST_ADDRESS"
	nameVariable    = "PLAIT_CRASHTEST_NAME"
)

// roles are the tasks of such a process, by name.
var roles = map[string]func(ctx context.Context, db Store) error{
	"append":                   appendForever,
	"append and promise early": appendForever,
}

// exitFailed is the exit code of a process that failed. Windows has 1 for a killed one.
const exitFailed = 3

// Main does the work of a process started by a test, and ends the program. In any other program it does nothing.
func Main(open Open) {
	role := os.Getenv(roleVariable)
	if role == "" {
		return
	}

	ctx := context.Background()
	db, err := open(ctx, os.Getenv(addressVariable))
	if err == nil {
		err = errors.Join(roles[role](ctx, db), db.Close())
	}

	// Never return: the process is a test binary, and would run its tests.
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitFailed)
	}
	os.Exit(0)
}

// command returns the command of a process with a role.
func command(t *testing.T, role, address, name string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), roleVariable+"="+role, addressVariable+"="+address, nameVariable+"="+name)
	return cmd
}

// number returns the number in an environment variable, or else the one given.
func number(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, variable)
	return n
}

// output writes the lines of a process. A line is written as a whole, and is short enough for a pipe to keep it whole.
// A line written before a kill can be read after it, and the lines of several processes come in the order of their
// writes.
type output struct{ mu sync.Mutex }

func (o *output) print(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, _ = os.Stdout.Write(fmt.Appendf(nil, format+"\n", args...)) // without a reader, nobody is interested any more
}
