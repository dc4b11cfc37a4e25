package crashtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// writers is how many goroutines of a process append. Two of them share each conversation.
const writers = 8

// Appends kills an appending process at random moments. It compares the acknowledged appends with the stored ones.
type Appends struct {
	Open Open
	// Database returns the address of a new, empty database.
	Database func() string
	// Kills is how often. PLAIT_KILLS replaces it.
	Kills int
	// Server, if it is set, is the server of the databases. It is crashed and started again in place of the process.
	Server interface {
		Stop(crash bool) error
		Restart() error
	}
}

// Test fails for a lost append, if it was acknowledged, and for any damage.
func (a Appends) Test(t *testing.T) {
	t.Helper()
	k := newKiller(t, a)
	for range number(t, "PLAIT_KILLS", a.Kills) {
		k.kill("append")
		require.Empty(t, k.found, "PLAIT_SEED=%d", k.seed)
	}
	slices.Sort(k.reopened)
	t.Logf("%d kills, %d appends acknowledged, 0 lost; opened again in %v, at most in %v",
		k.kills, k.acknowledged, k.reopened[len(k.reopened)/2], k.reopened[len(k.reopened)-1])
}

// TestControl fails if lost appends stay unnoticed: its processes acknowledge before they append.
func (a Appends) TestControl(t *testing.T) {
	t.Helper()
	k := newKiller(t, a)
	for range 50 {
		k.kill("append and promise early")
		if strings.Contains(fmt.Sprint(k.found), "lost") {
			return
		}
	}
	t.Error("nothing was lost")
}

// perDatabase is how many kills a database has to bear. Checking it takes longer with each.
const perDatabase = 20

// killer kills processes.
type killer struct {
	Appends
	t      *testing.T
	seed   uint64
	random *rand.Rand

	address string
	promise map[string]map[uint64]string // the acknowledged appends in this database: IDs by conversation and version
	found   []string                     // the faults

	kills, acknowledged int
	reopened            []time.Duration
}

func newKiller(t *testing.T, a Appends) *killer {
	seed := seedtest.First(t) // of the plan: the moments differ each time
	return &killer{Appends: a, t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 0))}
}

// kill starts a process, kills it and checks the database.
func (k *killer) kill(role string) {
	k.t.Helper()
	if k.kills%perDatabase == 0 {
		k.address, k.promise = k.Database(), map[string]map[uint64]string{}
	}
	k.kills++

	cmd := command(k.t, role, k.address, "")

	out, err := cmd.StdoutPipe()
	require.NoError(k.t, err)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	require.NoError(k.t, cmd.Start())

	// Some are killed while they start. The pipe lets a process run ahead of its reader: a kill after a line may come
	// at any moment.
	after := 1 + k.random.IntN(200)
	if k.Server == nil && k.random.IntN(8) == 0 {
		after = 0
		defer time.AfterFunc(time.Duration(k.random.IntN(80))*time.Millisecond, func() { _ = cmd.Process.Kill() }).Stop()
	}

	// Read to the end also after the kill: the lines still in the pipe are acknowledged appends.
	lines := bufio.NewScanner(out)
	for n := 1; lines.Scan(); n++ {
		k.note(lines.Text())
		if n == after {
			k.end(cmd)
		}
	}
	require.NoError(k.t, lines.Err())

	// If the server was stopped, the process ends by itself, at its first error.
	if err := cmd.Wait(); !wasKilled(err) && k.Server == nil {
		k.fault("the process has ended by itself: %v\n%s", err, stderr.String())
	}
	if k.Server != nil {
		require.NoError(k.t, k.Server.Restart())
	}
	k.check()
}

// end kills the process, or the server under it.
func (k *killer) end(cmd *exec.Cmd) {
	k.t.Helper()
	if k.Server != nil {
		require.NoError(k.t, k.Server.Stop(true)) // the process ends at the first error
		return
	}
	require.NoError(k.t, cmd.Process.Kill())
}

// wasKilled reports whether a process was killed.
func wasKilled(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	return !exit.Exited() || runtime.GOOS == "windows" && exit.ExitCode() == 1
}

func (k *killer) fault(format string, args ...any) {
	k.found = append(k.found, fmt.Sprintf(format, args...))
}

// note notes an acknowledged append.
func (k *killer) note(line string) {
	var conversation, id string
	var version uint64
	if _, err := fmt.Sscan(line, &conversation, &version, &id); err != nil {
		k.fault("the process has written %q", line)
		return
	}

	// Two writers share a conversation, and only one of them may win a version.
	k.acknowledged++
	if k.promise[conversation] == nil {
		k.promise[conversation] = map[uint64]string{}
	}
	if other := k.promise[conversation][version]; other != "" {
		k.fault("acknowledged twice: %s, version %d: %s and %s", conversation, version, other, id)
	}
	k.promise[conversation][version] = id
}

// check opens the database and compares.
func (k *killer) check() {
	k.t.Helper()
	// The test reports how long the first opening after a crash takes.
	ctx := context.Background()
	began := time.Now()
	db, err := k.Open(ctx, k.address)
	require.NoError(k.t, err)
	k.reopened = append(k.reopened, time.Since(began))
	defer func() { require.NoError(k.t, db.Close()) }()

	if err := db.Check(ctx); err != nil {
		k.fault("damaged: %v", err)
	}

	// Each append adds one record and one version, so chain[v-1] is the record of version v.
	for conversation, promised := range k.promise {
		chain := k.chain(ctx, db, conversation)
		for version, id := range promised {
			if version > uint64(len(chain)) || chain[version-1] != id {
				k.fault("lost: %s, version %d: %s", conversation, version, id)
			}
		}
	}
}

// chain returns the IDs of a conversation. It must be a chain, with a record for each version of the head.
func (k *killer) chain(ctx context.Context, db Store, conversation string) (ids []string) {
	k.t.Helper()
	head, err := db.Head(ctx, conversation, store.Main)
	if errors.Is(err, store.ErrNotStored) {
		return nil
	}
	require.NoError(k.t, err)

	// Read yields a record after its links, so a chain comes from its beginning.
	var last []node.ID
	for r, err := range db.Read(ctx, conversation, head.Nodes, nil) {
		require.NoError(k.t, err)
		if !slices.Equal(r.Links, last) {
			k.fault("no chain: %s, record %s is linked to %v", conversation, r.ID, r.Links)
		}
		last = []node.ID{r.ID}
		ids = append(ids, r.ID.String())
	}
	if uint64(len(ids)) != head.Version {
		k.fault("%s: its head has version %d, and reaches %d records", conversation, head.Version, len(ids))
	}

	// An append is stored whole or not at all, so no head leaves a record behind.
	orphans, err := db.Prune(ctx, conversation, true)
	require.NoError(k.t, err)
	if orphans.Records > 0 {
		k.fault("%s: no head reaches %d records", conversation, orphans.Records)
	}
	return ids
}

// appendForever appends until an append fails, and writes the acknowledged ones to its output.
func appendForever(ctx context.Context, db Store) error {
	var out output
	errs := make(chan error, writers)
	early := os.Getenv(roleVariable) == "append and promise early"
	for w := range writers {
		conversation := w / 2
		if early {
			conversation = w // one writer each: every loss is due to the kill, not to the other writer
		}
		go func() { errs <- appendTo(ctx, db, fmt.Sprint("talk", conversation), early, &out) }()
	}
	return <-errs
}

func appendTo(ctx context.Context, db Store, conversation string, early bool, out *output) error {
	head, err := db.Head(ctx, conversation, store.Main)
	if err != nil && !errors.Is(err, store.ErrNotStored) {
		return err
	}

	for n := 0; ; n++ {
		// The control promises before it appends, and so breaks its promise if it is killed in between.
		a := next(conversation, head, n)
		if early {
			out.print("%s %d %s", conversation, head.Version+1, a.Nodes[0])
		}

		moved, err := db.Append(ctx, a)
		var conflict *store.ConflictError
		switch {
		case errors.As(err, &conflict): // the other writer was first
			head = conflict.Current
			continue
		case err != nil:
			return err
		}
		head = moved
		if !early {
			out.print("%s %d %s", conversation, head.Version, a.Nodes[0])
		}
	}
}

// next returns an append of one record to a head. Some records are large.
func next(conversation string, head store.Head, n int) store.AppendRequest {
	r := store.Record{ID: uuid.Must(uuid.NewV7()), Links: head.Nodes, Line: fmt.Appendf(nil, "%0*d", 200+n%800, n)}
	a := store.AppendRequest{Conversation: conversation, Head: store.Main, Expect: head.Version, Nodes: []node.ID{r.ID}}
	if n%4 == 0 {
		r.Line = fmt.Appendf(r.Line, "%05000d", n%3)
	}
	r.Sum = store.SumOf(r.Line)
	a.Records = []store.Record{r}
	return a
}
