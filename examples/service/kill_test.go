package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/store"
	"github.com/plait-dev/plait/store/sqlite"
)

// child names the variable of a child process, in which the test binary is the service.
const child = "PLAIT_EXAMPLE_SERVICE_CHILD"

const (
	kills    = 3
	sessions = 5
	clients  = 8
)

// Clients send messages to a few sessions, some of which have two clients, while the service is killed and started
// again.
func TestNothingAcknowledgedIsLostWhenTheServiceIsKilled(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sessions.db")
	l := newLoad()
	p := startService(t, file)
	l.serve(p.url)
	for i := range clients {
		l.running.Go(func() { l.client(fmt.Sprintf("s%d", i%sessions), fmt.Sprintf("client %d", i)) })
	}

	// The moment is a number of events that clients have received, so it can be anywhere in other clients' runs.
	for range kills {
		p.wait(l.after(100 + rand.IntN(200)))
		p.kill()
		p = startService(t, file)
		l.serve(p.url)
	}
	p.wait(l.after(200))
	l.end()
	p.kill()

	require.NoError(t, errors.Join(l.failures...))
	require.GreaterOrEqual(t, l.cut, kills, "requests were cut off by each kill")
	require.NotEmpty(t, l.conflicts)
	require.NotEmpty(t, l.acknowledged)
	t.Logf("%d acknowledged, %d refused, %d cut off", len(l.acknowledged), len(l.conflicts), l.cut)
	l.check(t, file)
}

// process is a process that runs the example.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	url  string
	gone chan struct{} // closed when the process has ended
}

// startService starts the example on a database, and returns when it listens.
func startService(t *testing.T, file string) *process {
	p := &process{t: t, cmd: exec.Command(os.Args[0], "-addr", "localhost:0", "-db", file), gone: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), child+"=1", "ANTHROPIC_API_KEY=")
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())

	line, err := bufio.NewReader(out).ReadString('\n')
	go func() {
		_ = p.cmd.Wait() // it is killed
		close(p.gone)
	}()
	t.Cleanup(p.kill)
	require.NoError(t, err)
	p.url = strings.TrimSpace(strings.TrimPrefix(line, "listening on "))
	return p
}

// kill ends the process with SIGKILL, if it has not ended.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.gone
}

// wait waits for reached. The test fails if the process ends before.
func (p *process) wait(reached <-chan struct{}) {
	select {
	case <-reached:
	case <-p.gone:
		require.FailNow(p.t, "the service has ended by itself")
	}
}

// answer is an acknowledged answer.
type answer struct{ session, question, text string }

// conflict is a refused message, and the head that keeps it.
type conflict struct{ session, question, head string }

// load is the clients and what they were told.
type load struct {
	running sync.WaitGroup

	mu           sync.Mutex // guards the fields below
	url          string     // of the process that runs
	replaced     chan struct{}
	seen, goal   int           // events received, and the number at which reached is closed
	reached      chan struct{} // nil if nobody waits
	over         bool
	acknowledged []answer
	conflicts    []conflict
	cut          int
	failures     []error
}

func newLoad() *load { return &load{replaced: make(chan struct{})} }

// serve sends clients to a new process.
func (l *load) serve(url string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.url = url
	close(l.replaced)
	l.replaced = make(chan struct{})
}

// after returns a channel that is closed when clients have received so many events more.
func (l *load) after(events int) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.goal, l.reached = l.seen+events, make(chan struct{})
	return l.reached
}

// received counts an event.
func (l *load) received() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen++
	if l.reached != nil && l.seen >= l.goal {
		close(l.reached)
		l.reached = nil
	}
}

// end lets clients finish their requests, and waits for them.
func (l *load) end() {
	l.mu.Lock()
	l.over = true
	l.mu.Unlock()
	l.running.Wait()
}

// client sends messages to a session until the load is over. After a cut it waits for the next process, and sends
// another message.
func (l *load) client(session, name string) {
	for n := 0; ; n++ {
		question := fmt.Sprintf("%s, message %d", name, n)
		if n%2 == 1 {
			question += ". What time is it?"
		}

		l.mu.Lock()
		url, replaced, over := l.url, l.replaced, l.over
		l.mu.Unlock()
		if over {
			return
		}
		if l.ask(url, session, question) {
			<-replaced
		}
	}
}

// ask sends one message and notes what became of it. It reports whether the request was cut off.
func (l *load) ask(url, session, question string) (cut bool) {
	body := strings.NewReader(fmt.Sprintf(`{"text": %q}`, question))
	res, err := http.Post(url+"/sessions/"+session, "application/json", body)
	if err != nil {
		return l.note(func() { l.cut++ }, true)
	}
	defer res.Body.Close()

	// A refusal is the whole body, and otherwise the last event is.
	var event, data string
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(res.Body)
		event, data = fmt.Sprint(res.StatusCode), string(text)
		l.received()
	}
	for scanner := bufio.NewScanner(res.Body); scanner.Scan(); {
		if name, ok := strings.CutPrefix(scanner.Text(), "event: "); ok {
			event = name
		}
		if text, ok := strings.CutPrefix(scanner.Text(), "data: "); ok {
			data = strings.Trim(text, `"`)
			l.received()
		}
	}

	kept := keptPath.FindStringSubmatch(data)
	switch {
	case event == "done":
		return l.note(func() { l.acknowledged = append(l.acknowledged, answer{session, question, data}) }, false)
	case (event == "409" || event == "conflict") && kept != nil:
		return l.note(func() { l.conflicts = append(l.conflicts, conflict{session, question, kept[2]}) }, false)
	case event == "" || event == "text" || event == "tool":
		return l.note(func() { l.cut++ }, true)
	}
	return l.note(func() { l.failures = append(l.failures, fmt.Errorf("%s: %s", event, data)) }, false)
}

// note calls change with the lock held, and returns cut.
func (l *load) note(change func(), cut bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
	return cut
}

// check compares what clients were told with what is in the database.
func (l *load) check(t *testing.T, file string) {
	db, err := sqlite.Open(t.Context(), file, nil)
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, db.Check(t.Context()))

	s := store.New(db, nil)
	head := func(session, name string) dag.DAG {
		c, err := s.Head(t.Context(), session, name)
		require.NoError(t, err)
		require.True(t, c.DAG().Verify().OK())
		require.Empty(t, c.DAG().Validate(), "%s at %s", session, name)
		return c.DAG()
	}

	messages := map[string][]content.Message{}
	for i := range sessions {
		session := fmt.Sprintf("s%d", i)
		messages[session] = head(session, store.Main).Messages()
	}
	for _, a := range l.acknowledged {
		at := indexOf(messages[a.session], content.User, a.question)
		require.GreaterOrEqual(t, at, 0, "%s: %q is lost", a.session, a.question)
		after := messages[a.session][at:]
		at = indexOf(after, content.Assistant, a.text)
		require.GreaterOrEqual(t, at, 0, "%s: the answer to %q is lost", a.session, a.question)
	}
	for _, c := range l.conflicts {
		kept := head(c.session, c.head).Messages()
		require.GreaterOrEqual(t, indexOf(kept, content.User, c.question), 0, "%s: %q is not kept", c.session, c.question)
	}
}

// indexOf returns the index of the first message of that role with that text, or -1.
func indexOf(messages []content.Message, role content.Role, text string) int {
	return slices.IndexFunc(messages, func(m content.Message) bool { return m.Role == role && m.Blocks.Text() == text })
}
