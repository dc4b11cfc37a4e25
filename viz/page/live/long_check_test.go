package live

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/viz/internal/viztest"
	pages "github.com/plait-dev/plait/viz/page"
)

// The test in this file measures a page with 100,000 nodes; it runs where PLAIT_BROWSER and PLAIT_LONG are 1. Its server is a process of its own: this program with
// PLAIT_SERVED set, see TestMain.

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
	server := exec.Command(os.Args[0])
	server.Env, server.Stderr = append(os.Environ(), "PLAIT_SERVED="+file), os.Stderr
	in, err := server.StdinPipe()
	require.NoError(t, err)
	said, err := server.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, server.Start())
	url, err := bufio.NewReader(said).ReadString('\n')
	require.NoError(t, err)

	var opened struct{ FirstRow, Whole, Heap, Process int }
	measure := exec.Command("node", "long.mjs", strings.TrimSpace(url), words)
	measure.Dir, measure.Stderr = folder, os.Stderr
	line, err := measure.Output()
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(line, &opened))
	served := peak(t, server.Process.Pid)
	require.NoError(t, in.Close())
	require.NoError(t, server.Wait())

	require.LessOrEqual(t, info.Size(), int64(60e6), "the file")
	require.LessOrEqual(t, opened.Process, 200<<20, "the memory of the browser")
	t.Logf("%s: first row %d ms, all %d ms, page %d MB of JavaScript, %d MB of its process, server %d MB, file %d MB", words,
		opened.FirstRow, opened.Whole, opened.Heap>>20, opened.Process>>20, served>>20, info.Size()>>20)
}

// peak returns the most memory that a process has had, in bytes; 0 where the system does not tell.
func peak(t *testing.T, pid int) int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
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
