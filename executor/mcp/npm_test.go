package mcp_test

import (
	"bytes"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/mcp"
)

// published is a Dial for a server of package.json in .ci/mcp. The tests run where PLAIT_MCP=1 is set, and then fail
// where the servers are not installed.
func published(t *testing.T, name string, args ...string) mcp.Dial {
	t.Helper()
	if os.Getenv("PLAIT_MCP") == "" {
		t.Skip("SKIPPED: PLAIT_MCP=1 drives public MCP servers; .ci/mcp/install.sh installs them")
	}
	path, err := filepath.Abs(filepath.Join("..", "..", ".ci", "mcp", "node_modules", ".bin", name))
	require.NoError(t, err)
	require.FileExists(t, path, "install the servers by .ci/mcp/install.sh")
	return mcp.Command(path, args...)
}

// progressCounter counts the notifications of progress in the log of an sdk.LoggingTransport.
type progressCounter struct{ atomic.Int64 }

func (c *progressCounter) Write(line []byte) (int, error) {
	if bytes.HasPrefix(line, []byte("read: ")) && bytes.Contains(line, []byte(`"notifications/progress"`)) {
		c.Add(1)
	}
	return len(line), nil
}

func TestPublicServerWithEverything(t *testing.T) {
	dial, sent := published(t, "mcp-server-everything"), new(progressCounter)
	s := connect(t, func() (sdk.Transport, error) {
		transport, err := dial()
		return &sdk.LoggingTransport{Transport: transport, Writer: sent}, err
	}, nil)
	require.Empty(t, s.LeftOut())
	t.Log(names(s))

	var updates int64
	model := apitest.NewScript(apitest.Call(
		apitest.Use("echo", map[string]string{"message": "<&\u2028 日本"}),
		apitest.Use("get-sum", map[string]int{"a": 2, "b": 3}),
		apitest.Use("get-tiny-image", nil),
		apitest.Use("get-structured-content", map[string]string{"location": "New York"}),
		apitest.Use("get-resource-reference", map[string]any{"resourceType": "Text", "resourceId": 1}),
		apitest.Use("get-resource-links", map[string]int{"count": 2}),
		apitest.Use("trigger-long-running-operation", map[string]int{"duration": 1, "steps": 4}),
		apitest.Use("get-sum", map[string]string{"a": "x"}),
	), apitest.Say("Done."))
	var d dag.DAG
	for event, err := range (executor.Agent{Provider: model, Tools: s.Tools()}).Stream(t.Context(), dag.New().User("Go.")) {
		require.NoError(t, err)
		switch e := event.(type) {
		case executor.ToolUpdate:
			updates++
		case executor.End:
			d = e.DAG
		}
	}

	results := executions(d)
	require.Contains(t, results[0].Result.Text(), "<&\u2028 日本")
	require.Contains(t, results[1].Result.Text(), "5")
	require.Condition(t, func() bool {
		for _, b := range results[2].Result.Slice() {
			if _, ok := b.(content.Image); ok {
				return true
			}
		}
		return false
	}, "an image")
	require.True(t, results[3].Details.IsObject(), results[3].Details)
	require.Contains(t, results[4].Result.Text(), "Resource ")
	require.Contains(t, results[5].Result.Text(), "Resource ")
	require.Contains(t, results[6].Result.Text(), "completed")

	// On a busy machine the notifications and the result may be read at once. What is handled after the result is dropped,
	// so only the number of those sent is certain; TestProgressOfAServerIsAnUpdate has what becomes of them.
	require.GreaterOrEqual(t, sent.Load(), int64(3))
	require.LessOrEqual(t, updates, sent.Load())
	for i, r := range results {
		require.Equal(t, i == 7, r.IsError, "%s: %s", r.Tool, r.Result.Text())
	}
}

func TestPublicFileSystemServer(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	s := connect(t, published(t, "mcp-server-filesystem", dir), &mcp.Options{Name: "fs"})
	require.Empty(t, s.LeftOut())
	file := filepath.Join(dir, "a.txt")
	wrote := run(t, s, apitest.Use("fs_write_file", map[string]string{"path": file, "content": "written by a model"}))[0]
	require.False(t, wrote.IsError, wrote.Result.Text())
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "written by a model", string(data))

	results := run(t, s, apitest.Use("fs_read_text_file", map[string]string{"path": file}),
		apitest.Use("fs_read_text_file", map[string]string{"path": "/etc/passwd"}))
	require.Contains(t, results[0].Result.Text(), "written by a model")
	require.True(t, results[1].IsError)
}

func TestPublicMemoryServer(t *testing.T) {
	t.Setenv("MEMORY_FILE_PATH", filepath.Join(t.TempDir(), "memory.json"))
	s := connect(t, published(t, "mcp-server-memory"), nil)
	require.Empty(t, s.LeftOut())
	entities := []map[string]any{{"name": "Ada", "entityType": "person", "observations": []string{"likes looms"}}}
	made := run(t, s, apitest.Use("create_entities", map[string]any{"entities": entities}))[0]
	require.False(t, made.IsError, made.Result.Text())
	require.Contains(t, run(t, s, apitest.Use("search_nodes", map[string]string{"query": "looms"}))[0].Result.Text(), "Ada")
}
