//go:build unix

package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/content"
)

// Keys of a terminal.
const (
	left, right, up     = "\x1b[D", "\x1b[C", "\x1b[A"
	backspace, del      = "\x7f", "\x1b[3~"
	home, end           = "\x01", "\x05"
	word, after, before = "\x17", "\x0b", "\x15" // each deletes it
	newline             = "\n"
	paste, pasted       = "\x1b[200~", "\x1b[201~"
)

// edited are keys, and the text that they make. The mark is typed last: it is where the cursor is.
var edited = []struct{ keys, text string }{
	{"東京のて" + backspace + backspace, "東京§"},
	{"日本" + left + "x", "日x§本"},
	{"日本語" + home + "a", "a§日本語"},
	{"日本語" + left + left + del, "日§語"},
	{"日本語" + home + right + right + backspace, "日§語"},
	{"e\u0301a" + left + backspace, "§a"},
	{"e\u0301a" + left + left + "x", "x§e\u0301a"},
	{"e\u0301" + backspace, "§"},
	{"a\u0301\u0327b" + left + backspace, "§b"},
	{"n\u0303o" + home + del, "§o"},
	{"n\u0303o" + home + right + "-", "n\u0303-§o"},
	{"👍🏽a" + left + backspace, "§a"},
	{"👨‍👩‍👧x" + left + backspace, "§x"},
	{"👨‍👩‍👧x" + left + left + "y", "y§👨‍👩‍👧x"},
	{"👩‍💻👩‍💻" + backspace, "👩‍💻§"},
	{"🇩🇪🇫🇷" + backspace, "🇩🇪§"},
	{"🇩🇪🇫🇷" + left + "x", "🇩🇪x§🇫🇷"},
	{"☀️b" + left + backspace, "§b"},
	{"1️⃣b" + left + backspace, "§b"},
	{"한국어" + left + del, "한국§"},
	{"\u1112\u1161\u11ab" + backspace, "§"},
	{"नमः" + backspace, "न§"},
	{"นี้" + backspace + "ก", "ก§"},
	{"עברית" + left + left + "x", "עברx§ית"},
	{"abc עברית" + word, "abc §"},
	{"سلام" + backspace, "سلا§"},
	{"ｱｲｳ" + backspace, "ｱｲ§"},
	{"ＡＢ" + left + "c", "Ａc§Ｂ"},
	{strings.Repeat("x", 90) + "東" + left + left + "y", strings.Repeat("x", 89) + "y§x東"},
	{strings.Repeat("長", 45) + home + "a" + end + "b", "a" + strings.Repeat("長", 45) + "b§"},
	{strings.Repeat("長", 45) + home + del, "§" + strings.Repeat("長", 44)},
	{"ab" + strings.Repeat("長", 40) + strings.Repeat(backspace, 3), "ab" + strings.Repeat("長", 37) + "§"},
	{strings.Repeat("a日", 30) + home + right + right + "|", "a日|§" + strings.Repeat("a日", 29)},
	{"one" + newline + "二" + backspace + "2", "one\n2§"},
	{"二" + newline + "三" + up + "x", "二x§\n三"},
	{"二" + newline + "e\u0301" + backspace + backspace, "二§"},
	{"あいう" + before, "§"},
	{"あいう" + home + after, "§"},
	{"あ いう" + word, "あ §"},
	{"o\u0308\u0323x" + left + left + del, "§x"},
	{paste + "日本\r語" + pasted + backspace, "日本\n§"},
	{paste + "a\x1b[31mb\u202ec" + pasted, "abc§"},
}

// TestWhatIsShownIsWhatIsSent types into a chat and compares the editor, as a terminal shows it, with the message that
// the model gets.
func TestWhatIsShownIsWhatIsSent(t *testing.T) {
	for name, open := range map[string]func(*testing.T, ...string) (press func(string), rows func() string){
		"emulator": inEmulator,
		"tmux":     inTmux,
	} {
		t.Run(name, func(t *testing.T) {
			sent := make(chan string, 1)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				r.Body = io.NopCloser(strings.NewReader(string(body)))
				fake.Anthropic(fake.AnthropicMessage(content.Text{Text: "Answered."})).ServeHTTP(w, r)
				sent <- lastMessage(body)
			}))
			defer server.Close()

			press, rows := open(t, "plait", "chat", "--model", "claude-test", "--provider", "anthropic", "--base-url", server.URL)
			awaitShown(t, rows, "", "")
			for _, e := range edited {
				press(e.keys + "§")
				want := strings.Fields(e.text)
				awaitShown(t, rows, strings.Join(want, ""), e.keys)
				press("\r")
				require.Equal(t, e.text, <-sent, "%q", e.keys)
			}
		})
	}
}

// lastMessage returns the text of the last message of a request.
func lastMessage(body []byte) string {
	var request struct {
		Messages []struct{ Content []struct{ Text string } }
	}
	if json.Unmarshal(body, &request) != nil || len(request.Messages) == 0 {
		return ""
	}
	var text strings.Builder
	for _, part := range request.Messages[len(request.Messages)-1].Content {
		text.WriteString(part.Text)
	}
	return text.String()
}

// awaitShown waits until the editor shows a text. Spaces, at which rows are broken, do not count.
func awaitShown(t *testing.T, rows func() string, want, keys string) {
	t.Helper()
	for began := time.Now(); ; {
		screen := "\n" + rows()
		at := strings.LastIndex(screen, "\n>")
		if at >= 0 {
			editor, _, _ := strings.Cut(screen[at+2:], "\nclaude-test")
			if strings.Join(strings.Fields(editor), "") == want {
				return
			}
		}
		require.Less(t, time.Since(began), time.Minute, "%q is not shown after %q:\n%s", want, keys, screen)
	}
}

// inEmulator starts a command in an emulated terminal.
func inEmulator(t *testing.T, args ...string) (press func(string), rows func() string) {
	s := inTerminal(t, nil, args...)
	var lock sync.Mutex
	return s.press, func() string {
		lock.Lock()
		defer lock.Unlock()
		select {
		case more := <-s.shown:
			s.write(more)
		case <-time.After(time.Millisecond): // nothing more was written
		}
		return s.rows()
	}
}

// inTmux starts a command in a terminal multiplexer.
func inTmux(t *testing.T, args ...string) (press func(string), rows func() string) {
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("SKIPPED: tmux is not installed; .ci/run installs it")
	}
	dir, err := os.MkdirTemp("", "tmux") // the path of a socket must be short
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })

	tmux := func(args ...string) string {
		cmd := exec.Command("tmux", append([]string{"-u", "-S", dir + "/s", "-f", "/dev/null"}, args...)...)
		cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	tmux(append([]string{"new-session", "-d", "-x", "80", "-y", "40"}, args...)...)
	t.Cleanup(func() { tmux("kill-server") })
	press = func(keys string) { tmux("send-keys", "-l", keys) }
	return press, func() string { return tmux("capture-pane", "-p") }
}
