//go:build unix

package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
	"github.com/stretchr/testify/require"
	"golang.org/x/term"

	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
)

// screenOf is a command in a terminal of 80 columns, and what the terminal has shown.
type screenOf struct {
	t     *testing.T
	cmd   *exec.Cmd
	tty   *os.File
	shown chan string
	text  string // all that was written, with its escape sequences
	emu   *vt.Emulator
	row   int // of rows, behind what was awaited
	at    int // in the row
}

// inTerminal starts a command in a terminal.
func inTerminal(t *testing.T, env []string, args ...string) *screenOf {
	t.Helper()
	s := &screenOf{t: t, cmd: exec.Command(args[0], args[1:]...), shown: make(chan string), emu: vt.NewEmulator(80, 24)}
	s.cmd.Env = append(os.Environ(), append([]string{"TERM=xterm", "NO_COLOR="}, env...)...)
	tty, err := pty.StartWithSize(s.cmd, &pty.Winsize{Rows: 24, Cols: 80})
	require.NoError(t, err)
	s.tty = tty
	replied := make(chan struct{})
	go func() { // replies to questions about the terminal
		defer close(replied)
		_, _ = io.Copy(tty, s.emu)
	}()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		_ = s.emu.InputPipe().(io.Closer).Close() // Close of the emulator races with its Read
		_ = tty.Close()
		<-replied
		for range s.shown { // the reader ends
		}
	})

	go func() {
		defer close(s.shown)
		buf := make([]byte, 4096)
		for {
			n, err := tty.Read(buf)
			if n > 0 {
				s.shown <- string(buf[:n])
			}
			if err != nil {
				return
			}
		}
	}()
	return s
}

// rows returns what a person sees after scrolling back: all rows, each with its spaces.
func (s *screenOf) rows() string {
	var rows strings.Builder
	row := func(cellAt func(x, y int) *uv.Cell, y int) {
		for x := 0; x < s.emu.Width(); {
			cell := cellAt(x, y)
			if cell == nil || cell.Width == 0 {
				cell = &uv.EmptyCell
			}
			rows.WriteString(cell.Content)
			x += cell.Width
		}
		rows.WriteByte('\n')
	}
	for y := range s.emu.ScrollbackLen() {
		row(s.emu.ScrollbackCellAt, y)
	}
	for y := range s.emu.Height() {
		row(s.emu.CellAt, y)
	}
	return rows.String()
}

// await waits until the terminal shows a text, behind what was awaited before.
func (s *screenOf) await(text string) {
	s.t.Helper()
	late := time.After(patience)
	for {
		// Rows before may change: the rows of a response under way, and of what the chat waits for.
		rows := strings.SplitAfter(s.rows(), "\n")
		for y := min(s.row, len(rows)); y < len(rows); y++ {
			from := 0
			if y == s.row {
				from = min(s.at, len(rows[y]))
			}
			if at := strings.Index(rows[y][from:], text); at >= 0 {
				s.row, s.at = y, from+at+len(text)
				return
			}
		}
		s.more(late, text)
	}
}

// more waits for what the command writes next, until it is late for a text.
func (s *screenOf) more(late <-chan time.Time, text string) {
	s.t.Helper()
	select {
	case more, open := <-s.shown:
		require.True(s.t, open, "the command ended before it showed %q:\n%s", text, s.rows())
		s.write(more)
	case <-late:
		require.FailNow(s.t, "not shown", "%q is not shown:\n%s", text, s.rows())
	}
}

func (s *screenOf) write(more string) {
	s.text += more
	_, _ = s.emu.WriteString(more)
}

// types waits for a prompt and types a line.
func (s *screenOf) types(line string) {
	s.t.Helper()
	s.prompt()
	s.press(line + "\r")
}

// prompt waits until the chat waits for a message.
func (s *screenOf) prompt() {
	s.t.Helper()
	s.sees("> ")
	for late := time.After(patience); strings.Contains(s.rows(), "Ctrl-C stops"); {
		s.more(late, "the end of the response")
	}
}

// answered waits until the chat waits for a message, after responses with so many tokens in all. Their number is drawn
// with the prompt. The text of a response is printed before: for a moment it stands above the prompt of the message.
func (s *screenOf) answered(tokens string) {
	s.t.Helper()
	s.sees("this chat " + tokens)
	s.prompt()
}

// sees waits for a text that does not stay: what is printed next takes its row.
func (s *screenOf) sees(text string) {
	s.t.Helper()
	row, at := s.row, s.at
	s.await(text)
	s.row, s.at = row, at
}

func (s *screenOf) press(keys string) {
	s.t.Helper()
	_, err := io.WriteString(s.tty, keys)
	require.NoError(s.t, err)
}

// ends waits for the end of the command and returns its exit code.
func (s *screenOf) ends() int {
	s.t.Helper()
	hung := time.AfterFunc(patience, func() { _ = s.cmd.Process.Kill() })
	defer hung.Stop()
	for more := range s.shown {
		s.write(more)
	}
	err := s.cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		require.NoError(s.t, err)
	}
	return s.cmd.ProcessState.ExitCode()
}

// slowServer starts a server whose first response stops in the middle, and that answers the requests after it.
func slowServer(t *testing.T, replies ...fake.Reply) (url string, model *fake.API) {
	model = fake.Anthropic(replies...)
	var begun atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if begun.Swap(true) {
			model.ServeHTTP(w, r)
			return
		}

		_, _ = io.Copy(io.Discard, r.Body) // the end of the request is noticed only behind its body
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-test","content":[],"stop_reason":null,"usage":{"input_tokens":1,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Beginning of an answer"}}

`)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	return server.URL, model
}

func TestCtrlCStopsAResponseAndKeepsTheConversation(t *testing.T) {
	url, model := slowServer(t, fake.AnthropicMessage(use("call_1", "Paris")), fake.AnthropicMessage(content.Text{Text: "The second answer."}))
	dir := t.TempDir()
	file, starts := filepath.Join(dir, "talk.json"), filepath.Join(dir, "starts")
	server := `sh -c "echo started >>'` + starts + `'; exec weather-mcp"`
	s := inTerminal(t, nil, "plait", "chat", file, "--model", "claude-test", "--base-url", url, "--provider", "anthropic", "--mcp", server)

	s.types("Hello")
	s.await("Beginning of an")
	s.press("\x03")
	s.await("stopped; what arrived is kept")

	// At the prompt, Ctrl-C drops the line. Ctrl-D ends the chat.
	s.prompt()
	s.press("never sent\x03")
	s.await("Ctrl-D or /quit ends the chat")
	s.types("Continue")
	s.await("Run get_weather")
	s.press("y\r")
	s.await("Paris has 18 °C")
	s.await("The second answer.")
	s.answered("21 in, 11 out") // with the stopped one
	s.press("\x04")
	require.Zero(t, s.ends(), s.text)

	d, err := dag.Load(file)
	require.NoError(t, err)
	require.Contains(t, d.String(), "Beginning of an answer")
	require.Contains(t, d.String(), "cut off")
	require.NotContains(t, d.String(), "never sent")
	require.Contains(t, string(model.Bodies()[0]), "Beginning of an answer", "the model reads what the user saw")
	require.Empty(t, model.Refused())

	started, err := os.ReadFile(starts)
	require.NoError(t, err)
	require.Equal(t, "started\n", string(started), "Ctrl-C does not end the MCP server")
}

func TestChatFitsATerminalOf80Columns(t *testing.T) {
	words := strings.Repeat("Lorem ipsum dolor sit amet consetetur. ", 20) + strings.Repeat("日本語", 40)
	server := httptest.NewServer(fake.Anthropic(fake.AnthropicMessage(content.Text{Text: words})))
	defer server.Close()

	s := inTerminal(t, nil, "plait", "chat", "--model", "claude-test", "--base-url", server.URL)
	s.types("Hello")
	s.types("/help")
	s.types("/cost")
	s.types("/show")
	s.types("/quit")
	require.Zero(t, s.ends(), s.text)

	require.Contains(t, s.text, "\x1b[2m", "notes have a color")
	require.NotRegexp(t, `(?m)^(em|rem|orem|sum|lor|etur)`, s.rows(), "words are whole")
}

// TestKeysOfTheChat sends a message during a response, changes the model, goes back to a message, shows a whole result, and
// continues another conversation.
func TestKeysOfTheChat(t *testing.T) {
	var replies []fake.Reply
	for _, text := range []string{"First answer.", "Second answer.", "Third answer."} {
		replies = append(replies, fake.AnthropicMessage(content.Text{Text: text}))
	}
	model := fake.Anthropic(replies...)
	server := httptest.NewServer(model)
	defer server.Close()
	dir := t.TempDir()
	require.NoError(t, dag.New().User("Elsewhere").Assistant("Yes.").Save(filepath.Join(dir, "b.json")))

	s := inTerminal(t, nil, "plait", "chat", filepath.Join(dir, "a.json"), "--model", "claude-test", "--base-url", server.URL, "--provider", "anthropic")
	s.prompt()
	s.press("one\rtwo\r") // the second one waits for the first answer
	s.await("First answer.")
	s.await("> two")
	s.await("Second answer.")

	s.answered("20 in, 10 out")
	s.press("draft\x13") // Ctrl-S
	s.sees("The model:")
	s.press("claude-other\x1b[B\r")
	s.await("the model is claude-other")
	s.prompt()
	s.press("\x1b\x1b") // Escape, twice
	s.sees("Go back to")
	s.press("\x1b[B\r")
	s.await("back at the beginning")
	s.sees("draftone") // what was written stays
	s.press(" again\r")
	s.await("Third answer.")
	s.answered("30 in, 15 out")
	require.Contains(t, string(model.Bodies()[2]), "draftone again")
	require.Contains(t, string(model.Bodies()[2]), "claude-other")
	require.NotContains(t, string(model.Bodies()[2]), "two")

	s.press("\x12") // Ctrl-R
	s.sees("Continue:")
	s.sees("b.json")
	s.press("\r")
	s.await("continues")
	s.types("/show")
	s.await("Elsewhere")
	s.types("/quit")
	require.Zero(t, s.ends(), s.rows())
}

func TestNoColor(t *testing.T) {
	server := httptest.NewServer(fake.Anthropic(fake.AnthropicMessage(content.Text{Text: "Hi."})))
	defer server.Close()

	s := inTerminal(t, []string{"NO_COLOR=1"}, "plait", "chat", "--model", "claude-test", "--base-url", server.URL)
	s.types("Hello")
	s.types("/show")
	s.types("/quit")
	require.Zero(t, s.ends(), s.text)
	require.Contains(t, s.text, "Hi.")
	require.NotRegexp(t, `\x1b\[[0-9;]*m`, s.text)
}

func TestPastedLinesAreOneMessage(t *testing.T) {
	model := fake.Anthropic(fake.AnthropicMessage(content.Text{Text: "Two lines."}))
	server := httptest.NewServer(model)
	defer server.Close()

	s := inTerminal(t, nil, "plait", "chat", "--model", "claude-test", "--base-url", server.URL)
	s.types("\x1b[200~first\rsecond\x1b[201~")
	s.await("Two lines.")
	s.types("/quit")
	require.Zero(t, s.ends(), s.text)
	require.Contains(t, string(model.Bodies()[0]), `first\nsecond`)
}

// TestChatContinuesBesideChangesOfOtherPrograms changes the session during a chat: the chat saves beside it from then
// on.
func TestChatContinuesBesideChangesOfOtherPrograms(t *testing.T) {
	// A subtest's temporary folder is named after it, and must have no "#".
	for kind, name := range map[string]string{"database": "sessions.db#a", "file": "talk.json"} {
		t.Run(kind, func(t *testing.T) {
			var replies []fake.Reply
			for range 4 {
				replies = append(replies, fake.AnthropicMessage(content.Text{Text: "Answered."}))
			}
			server := httptest.NewServer(fake.Anthropic(replies...))
			defer server.Close()

			file := filepath.Join(t.TempDir(), name)
			s := inTerminal(t, nil, "plait", "chat", file, "--model", "claude-test", "--base-url", server.URL, "--provider", "anthropic")
			s.types("First")
			s.await("Answered.")
			s.answered("10 in, 5 out")
			_, errs, code := command("", "run", file, "--user", "From elsewhere", "-q")
			require.Equal(t, exitDone, code, errs)

			s.press("Second\r")
			s.await("plait: ") // the name of the file may take the rest of the row
			s.types("Third")
			s.await("Answered.")
			s.types("/quit")
			require.Zero(t, s.ends(), s.text)
			require.Equal(t, 1, strings.Count(s.text, "was changed"), s.text)

			kept := regexp.MustCompile(`(?:kept as|conversation is in) ([^\r\n\x1b]+)`).FindStringSubmatch(s.text)
			require.NotNil(t, kept, s.text)
			shown, errs, code := command("", "log", kept[1])
			require.Equal(t, exitDone, code, errs)
			require.Contains(t, shown, "Third")
			require.NotContains(t, shown, "From elsewhere")
			shown, errs, code = command("", "log", file)
			require.Equal(t, exitDone, code, errs)
			require.Contains(t, shown, "From elsewhere")
		})
	}
}

func TestTerminationAtAQuestionKeepsTheQuestion(t *testing.T) {
	server := httptest.NewServer(fake.Anthropic(fake.AnthropicMessage(use("call_1", "Paris"))))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "talk.json")
	args := []string{"plait", "chat", file, "--base-url", server.URL, "--provider", "anthropic", "--model", "claude-test", "--mcp", "weather-mcp"}

	s := inTerminal(t, nil, args...)
	s.types("Hello")
	s.await("Run get_weather")
	s.await("instead: ")
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, exitPaused, s.ends(), s.text)

	again := inTerminal(t, nil, args...)
	again.await("Run get_weather")
}

func TestTerminationAtAPromptEndsTheChat(t *testing.T) {
	server := httptest.NewServer(fake.Anthropic(fake.AnthropicMessage(content.Text{Text: "Answered."})))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "talk.json")
	args := []string{"plait", "chat", "--base-url", server.URL, "--provider", "anthropic", "--model", "claude-test"}
	other, slave, err := pty.Open()
	require.NoError(t, err)
	defer other.Close()
	defer slave.Close()

	terminate := func(s *screenOf, reason string) {
		s.press("never sent")
		s.await("never sent")
		require.NotEqual(t, modeOf(t, other), modeOf(t, s.tty))
		require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
		require.Equal(t, exitBad, s.ends(), s.text)
		require.Regexp(t, `(?m)^plait: interrupted; `+reason, s.rows(), "on a line of its own")
		require.Less(t, strings.LastIndex(s.text, "\x1b[?2004l"), strings.LastIndex(s.text, "plait: "), "pasting is reset")
		require.Equal(t, modeOf(t, other), modeOf(t, s.tty), "the terminal is as it was")
		require.NotContains(t, s.text, "Ctrl-D or /quit ends the chat")
	}

	s := inTerminal(t, nil, append(args, file)...)
	s.types("Hello")
	s.await("Answered.")
	s.answered("10 in, 5 out")
	terminate(s, "the conversation so far is saved")
	d, err := dag.Load(file)
	require.NoError(t, err)
	require.Equal(t, "Answered.", d.Text())

	s = inTerminal(t, nil, args...)
	s.prompt()
	terminate(s, "without FILE the conversation is not saved")
}

// modeOf returns the mode of a terminal.
func modeOf(t *testing.T, tty *os.File) *term.State {
	t.Helper()
	conn, err := tty.SyscallConn() // Fd would make reads block
	require.NoError(t, err)
	var mode *term.State
	var failure error
	require.NoError(t, conn.Control(func(fd uintptr) { mode, failure = term.GetState(int(fd)) }))
	require.NoError(t, failure)
	return mode
}

// TestOpenCallsOfAFileAreAskedForAtATerminal answers each question, in run and in chat. A decision about the tool spares no such call the question.
func TestOpenCallsOfAFileAreAskedForAtATerminal(t *testing.T) {
	for _, command := range []string{"run", "chat"} {
		t.Run(command, func(t *testing.T) {
			f := forge(t, openIn(t)["paused"], fake.AnthropicMessage(content.Text{Text: "Done."}))
			args := f.args("plait", command, f.file)
			if command == "chat" {
				args = append(args, "--allow", "get_weather")
			}

			s := inTerminal(t, nil, args...)
			s.await(`Run get_weather {"city":"Paris"}?`)
			s.await("instead: ")
			require.Zero(t, f.executed())
			s.press("n\r")
			s.await(`Run get_weather {"city":"Tokyo"}?`)
			s.await("2: [y]es") // what is typed before is no answer
			s.await("instead: ")
			s.press("y\r")
			s.await("Done.")
			if command == "chat" {
				s.types("/quit")
			}
			require.Zero(t, s.ends(), s.text)
			require.Equal(t, 1, f.executed())
			require.Contains(t, string(f.model.Bodies()[0]), "the user declined")
		})
	}
}

func TestCtrlCAtAQuestionAboutAnOpenCallLeavesTheFileAsItIs(t *testing.T) {
	f := forge(t, openIn(t)["open"])
	before, err := os.ReadFile(f.file)
	require.NoError(t, err)
	s := inTerminal(t, nil, f.args("plait", "run", f.file)...)
	s.await("instead: ")
	s.press("\x03")
	require.Equal(t, exitBad, s.ends(), s.text)
	f.requireUntouched(before)
}

// TestHangupSavesThePartialResponse: the terminal may report its end twice, from the system and from the shell.
func TestHangupSavesThePartialResponse(t *testing.T) {
	// Under nohup, or in a job that ignores the signal, the command would ignore it, too. A signal with a handler is none
	// that a child ignores.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)

	for _, command := range []string{"run", "chat"} {
		t.Run(command, func(t *testing.T) {
			url, _ := slowServer(t)
			file := filepath.Join(t.TempDir(), "talk.json")
			require.NoError(t, dag.New().User("Hello").Save(file))
			s := inTerminal(t, nil, "plait", command, file, "--model", "claude-test", "--base-url", url, "--provider", "anthropic")
			if command == "chat" {
				s.types("Hello")
			}
			s.await(map[string]string{"run": "answering", "chat": "Beginning of an"}[command])
			require.NoError(t, s.cmd.Process.Signal(syscall.SIGHUP))
			_ = s.cmd.Process.Signal(syscall.SIGHUP) // it may have ended
			require.Equal(t, exitBad, s.ends(), s.text)

			d, err := dag.Load(file)
			require.NoError(t, err)
			require.Contains(t, d.String(), "Beginning of an answer")
		})
	}
}
