package live

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/viz/internal/viztest"
	pages "github.com/plait-dev/plait/viz/page"
)

// The tests in this file measure a page with 100,000 nodes, where PLAIT_LONG is 1. The server is a process of its own:
// this program with PLAIT_SERVED set, see TestMain.

// longSession returns a conversation of a coding agent with at least n nodes.
func longSession(n int) dag.DAG {
	d := start().System("You are a coding agent.").Tools(content.Tool{Name: "read_file", Schema: `{"type":"object"}`})
	for i := 0; d.Len() < n; i++ {
		if i%20 == 0 {
			d = d.User(fmt.Sprintf("Go on with part %d.", i/20))
		}
		file := fmt.Sprintf("storage/part%02d/file%d.go", i/10, i%10)
		d = d.Assistant("I read "+file+".", content.ToolUse{ID: fmt.Sprintf("toolu_%06d", i), Name: "read_file", Input: content.JSON(`{"path":"` + file + `"}`)}).
			CloseTools(node.ToolExecution{Index: 1, Result: content.Words("package part\n\nfunc Open(path string) (*Store, error) {"), IsError: i%500 == 7})
	}
	return d
}

// serveFile serves a conversation until its standard input ends.
func serveFile(file string) error {
	debug.SetGCPercent(100) // as in a program, and not as in the tests of this package

	d, err := dag.Load(file)
	if err != nil {
		return err
	}
	s := New(d, &Options{Token: "token"})
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	served := make(chan error)
	go func() { served <- s.Serve(l) }()
	fmt.Println(s.URL(l.Addr()))

	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	if err := s.Close(); err != nil {
		return err
	}
	return <-served
}

func TestAHundredThousandNodesInARealBrowser(t *testing.T) {
	folder := viztest.BrowserCheck(t, "page", "PLAIT_BROWSER")
	if os.Getenv("PLAIT_LONG") == "" || os.Getenv("PLAIT_BROWSER") == "firefox" {
		t.Skip("SKIPPED: PLAIT_LONG=1 is not set, or the browser is not Chromium, which tells its memory")
	}
	const nodes = 100_000
	d := longSession(nodes)
	file := filepath.Join(t.TempDir(), "long.json")
	require.NoError(t, d.Save(file))
	words := strings.TrimSuffix(fmt.Sprintf("%d,%03d", d.Len()/1000, d.Len()%1000), ",") + " nodes"

	// The page as a file.
	html := filepath.Join(t.TempDir(), "long.html")
	out, err := os.Create(html)
	require.NoError(t, err)
	require.NoError(t, pages.Write(out, d, nil))
	require.NoError(t, out.Close())
	info, err := os.Stat(html)
	require.NoError(t, err)

	// The live page.
	server := serveApart(t, file)
	var opened struct{ FirstRow, Whole, Heap, Process int }
	measure := exec.Command("node", "long.mjs", server.url, words)
	measure.Dir, measure.Stderr = folder, os.Stderr
	line, err := measure.Output()
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(line, &opened))
	served := server.peak(t)

	require.LessOrEqual(t, info.Size(), int64(60e6), "the file")
	require.LessOrEqual(t, opened.Process, 200<<20, "the memory of the browser")
	require.LessOrEqual(t, served, maxServed, "the memory of the server")
	t.Logf("%s: first row %d ms, all %d ms, page %d MB of JavaScript, %d MB of its process, server %d MB, file %d MB", words,
		opened.FirstRow, opened.Whole, opened.Heap>>20, opened.Process>>20, served>>20, info.Size()>>20)
}

const maxServed = 380 << 20 // bytes of memory of a server with 100,000 nodes, whose garbage is collected late where the processors are busy

// TestServerOfAHundredThousandNodesNeedsLittle reads the whole conversation as a page does.
func TestServerOfAHundredThousandNodesNeedsLittle(t *testing.T) {
	if os.Getenv("PLAIT_LONG") == "" {
		t.Skip("SKIPPED: PLAIT_LONG=1 is not set")
	}
	file := filepath.Join(t.TempDir(), "long.json")
	require.NoError(t, longSession(100_000).Save(file))
	server := serveApart(t, file)
	loaded := server.time(t)

	address, token, _ := strings.Cut(server.url, "#token=")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"events", nil)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()

	e := &ear{t: t, in: bufio.NewReader(res.Body)}
	first, ok := e.next()
	require.True(t, ok)
	require.Equal(t, "patch", first.name)
	began := server.time(t) - loaded
	pieces := 1
	for event := first; event.name == "patch"; pieces++ {
		event, ok = e.next()
		require.True(t, ok)
	}

	used, whole := server.peak(t), server.time(t)-loaded
	t.Logf("%d events; the first after %v of the processor, all after %v; %d MB", pieces, began, whole, used>>20)
	require.LessOrEqual(t, used, maxServed)
	require.LessOrEqual(t, began, 3*time.Second)
}

// apart is a server in a process of its own.
type apart struct {
	url string
	pid int
}

// serveApart serves a file until the test ends.
func serveApart(t *testing.T, file string) apart {
	server := exec.Command(os.Args[0])
	server.Env, server.Stderr = append(os.Environ(), "PLAIT_SERVED="+file), os.Stderr
	in, err := server.StdinPipe()
	require.NoError(t, err)
	said, err := server.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		require.NoError(t, in.Close())
		require.NoError(t, server.Wait())
	})

	url, err := bufio.NewReader(said).ReadString('\n')
	require.NoError(t, err)
	return apart{strings.TrimSpace(url), server.Process.Pid}
}

// time returns the time of the processors that the server has used; 0 if the system does not tell.
func (a apart) time(t *testing.T) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", a.pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest) // from the third on: utime is the 14th, stime the 15th, in hundredths of a second
	user, err := strconv.Atoi(fields[11])
	require.NoError(t, err)
	system, err := strconv.Atoi(fields[12])
	require.NoError(t, err)
	return time.Duration(user+system) * 10 * time.Millisecond
}

// peak returns the most memory that the server has had, in bytes; 0 if the system does not tell.
func (a apart) peak(t *testing.T) int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if kB, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(kB), "kB")))
			require.NoError(t, err)
			return n << 10
		}
	}
	return 0
}
