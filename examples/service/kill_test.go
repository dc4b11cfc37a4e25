package main

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
)

// child names the variable of a child process, in which the test binary is the service.
const child = "PLAIT_EXAMPLE_SERVICE_CHILD"

const (
	sessions = 5
	clients  = 8
)

// Clients send messages to a few sessions, some of which have two clients, while the service is killed and started
// again. PLAIT_KILLS is the number of kills: see kill.sh.
func TestNothingAcknowledgedIsLostWhenTheServiceIsKilled(t *testing.T) {
	kills, _ := strconv.Atoi(os.Getenv("PLAIT_KILLS"))
	if seedtest.All() {
		kills = max(kills, 2)
	}
	kills = max(kills, 1) // the jobs of each killed service wait 3 seconds
	file := database(t)
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
	p.wait(l.after(100))
	l.end()

	// Every accepted message is answered, also those whose clients were cut off.
	for i := range sessions {
		require.Equal(t, "event: done", strings.SplitN(last(read(fmt.Sprintf("%s/sessions/s%d/events", p.url, i))), "\n", 2)[0])
	}
	p.kill()

	require.NoError(t, errors.Join(l.failures...))
	require.GreaterOrEqual(t, l.cut, kills, "requests were cut off by each kill")
	t.Logf("%d kills, %d messages accepted, %d answers received, %d cut off", kills, len(l.accepted), len(l.answers), l.cut)
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

// message is an accepted message, or an answer that a client has received.
type message struct{ session, text string }

// load is the clients and what they were told.
type load struct {
	running sync.WaitGroup

	mu         sync.Mutex // guards the fields below
	url        string     // of the process that runs
	replaced   chan struct{}
	seen, goal int           // events received, and the number at which reached is closed
	reached    chan struct{} // nil if nobody waits
	over       bool
	accepted   []message
	answers    []message
	cut        int
	failures   []error
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

	var event, data string
	for scanner := bufio.NewScanner(res.Body); scanner.Scan(); {
		if name, ok := strings.CutPrefix(scanner.Text(), "event: "); ok {
			event = name
		}
		text, ok := strings.CutPrefix(scanner.Text(), "data: ")
		if !ok {
			continue
		}
		data = strings.Trim(text, `"`)
		l.received()
		if event == "accepted" {
			l.note(func() { l.accepted = append(l.accepted, message{session, question}) }, false)
		}
	}

	switch event {
	case "done":
		return l.note(func() { l.answers = append(l.answers, message{session, data}) }, false)
	case "error":
		return l.note(func() { l.failures = append(l.failures, fmt.Errorf("%s: %s", event, data)) }, false)
	}
	return l.note(func() { l.cut++ }, true)
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
	for i := range sessions {
		session := fmt.Sprintf("s%d", i)
		messages := stored(t, file, session)
		require.Equal(t, content.Assistant, messages[len(messages)-1].Role)
		times := map[string]int{}
		for _, m := range messages {
			times[string(m.Role)+m.Blocks.Text()]++
		}
		for _, m := range l.accepted {
			require.Equal(t, m.session == session, times[string(content.User)+m.text] == 1, "%s: %q is lost, or there twice", session, m.text)
		}
		for _, m := range l.answers {
			if m.session == session {
				require.Positive(t, times[string(content.Assistant)+m.text], "%s: the answer %q is lost", session, m.text)
			}
		}
	}
}
