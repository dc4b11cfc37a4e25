package providers

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	anthropicopt "github.com/anthropics/anthropic-sdk-go/option"
	openaiopt "github.com/openai/openai-go/v3/option"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/anthropic"
	"github.com/plait-dev/plait/api/compatible"
	"github.com/plait-dev/plait/api/openai"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/testkit/fixture"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
)

// llama is a real llama.cpp server with a tiny model of random weights: it says nothing that makes sense, but as a compatible server
// says it.
type llama struct {
	url, key string
	client   *http.Client
	process  *os.Process
	textOnly bool // the model reads only text, as this one does, and its providers know it
	// The server's first report: that it is ready, or that it ended before.
	ready <-chan bool
	stop  func() // kills the server and waits for its end
}

// llamaFiles is the folder of the unpacked server.
type llamaFiles string

// startLlama starts the server of the fixtures for a test that is not run every day: see unpackLlama.
func startLlama(t *testing.T, args ...string) llama {
	return unpackLlama(t, false).start(t, "run.sh", freePort(t), args...)
}

// unpackLlama unpacks the server of the fixtures. It skips the test where they are absent or made for another platform,
// and where PLAIT_LLAMA and PLAIT_LONG are not set unless the test is run every day.
func unpackLlama(t *testing.T, everyDay bool) llamaFiles {
	if !everyDay && os.Getenv("PLAIT_LLAMA") == "" && !seedtest.Long() {
		t.Skip("SKIPPED: PLAIT_LLAMA=1 runs it beside a real llama.cpp server")
	}
	if testing.Short() {
		t.Skip("SKIPPED: a real server takes too long for -short")
	}

	archive := fixture.Path(t, "llama", "llama-server.tar.xz")
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skipf("SKIPPED: llama-server is for linux/amd64, and this is %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	dir := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "tar", "-xJf", archive, "-C", dir).CombinedOutput()
	require.NoError(t, err, "llama-server cannot be unpacked (tar needs xz): %s", out)
	return llamaFiles(filepath.Join(dir, "llama"))
}

func freePort(t *testing.T) string {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(free.Addr().String())
	require.NoError(t, err)
	require.NoError(t, free.Close())
	return port
}

// start runs one of the scripts until the server is ready.
func (f llamaFiles) start(t *testing.T, script, port string, args ...string) llama {
	l := f.launch(t, script, port, args...)
	require.True(t, <-l.ready, "llama-server ended before it was ready")
	return l
}

// launch runs one of the scripts, and does not wait for the server.
func (f llamaFiles) launch(t *testing.T, script, port string, args ...string) llama {
	ctx, cancel := context.WithCancel(context.Background())
	server := exec.CommandContext(ctx, filepath.Join(string(f), script), append([]string{port}, args...)...)
	server.WaitDelay = 10 * time.Second
	logged, err := server.StderrPipe()
	require.NoError(t, err)
	server.Stdout = server.Stderr
	require.NoError(t, server.Start())

	ready := make(chan bool, 1)
	l := llama{
		url: "http://127.0.0.1:" + port, key: "none", client: &http.Client{Transport: &http.Transport{}},
		process: server.Process, ready: ready,
	}
	read := make(chan struct{})
	transport := l.client.Transport.(*http.Transport)
	l.stop = sync.OnceFunc(func() {
		transport.CloseIdleConnections()
		cancel()
		<-read
		_ = server.Wait() // it was killed
	})
	t.Cleanup(l.stop)

	// The server is ready once it says so. What it says later is read as well, so that it never waits for a reader.
	go func() {
		defer close(read)
		lines := bufio.NewScanner(logged)
		for lines.Scan() {
			if strings.Contains(lines.Text(), "listening on") {
				select {
				case ready <- true:
				default:
				}
			}
		}
		select {
		case ready <- false:
		default:
		}
		_, _ = io.Copy(io.Discard, logged)
	}()
	return l
}

func (l llama) openAI(o openai.Options) *openai.Options {
	o.SDK = []openaiopt.RequestOption{openaiopt.WithBaseURL(l.url + "/v1"), openaiopt.WithAPIKey(l.key), openaiopt.WithHTTPClient(l.client)}
	return &o
}

func (l llama) messages(o anthropic.Options) api.Provider {
	o.SDK = []anthropicopt.RequestOption{
		anthropicopt.WithoutEnvironmentDefaults(), anthropicopt.WithAPIKey(l.key), anthropicopt.WithBaseURL(l.url), anthropicopt.WithHTTPClient(l.client),
	}
	return anthropic.New("tiny", &o)
}

func (l llama) responses(o openai.Options) api.Provider {
	return openai.NewResponses("tiny", l.openAI(o))
}

// llamaAPIs are the server's APIs.
var llamaAPIs = []string{"chat", "responses", "messages"}

// at returns a model of one of the server's APIs, as a program makes it that knows its server.
func (l llama) at(name string, o api.Options, noStream bool) api.Provider {
	open := openai.Options{Options: o, Server: compatible.LlamaCPP, TextOnly: l.textOnly, NoStream: noStream}
	switch name {
	case "chat":
		return openai.NewChat("tiny", l.openAI(open))
	case "responses":
		return l.responses(open)
	}
	return l.messages(anthropic.Options{Options: o, Server: compatible.LlamaCPP, TextOnly: l.textOnly, NoStream: noStream})
}

// all is a model of each of the server's APIs, as a program makes it that knows only the address.
func (l llama) all() map[string]api.Provider {
	return map[string]api.Provider{
		"chat": openai.NewChat("tiny", l.openAI(openai.Options{})), "responses": l.responses(openai.Options{}),
		"messages": l.messages(anthropic.Options{}),
	}
}

// send asks as a program does by default, with retries: a connection to a real server may break.
func send(t *testing.T, p api.Provider, req api.Request) (api.Response, error) {
	return api.NewClient(p, nil).Send(t.Context(), req)
}

func asks(words string, o api.Options) api.Request {
	return api.Request{Messages: []content.Message{{Role: content.User, Blocks: content.Words(words)}}, Options: o}
}

// TestCompatibleServer asks a real server for what compatible servers do in their own ways. It is the only test beside
// this server that is run every day.
func TestCompatibleServer(t *testing.T) {
	t.Parallel()
	l := unpackLlama(t, true).start(t, "run.sh", freePort(t), "-c", "4096", "-np", "2")
	list := content.Tool{Name: "ls", Schema: `{"type":"object","properties":{"p":{"type":"string"}},"required":["p"]}`}

	t.Run("a Responses stream of several items is heard (H1)", func(t *testing.T) {
		for n := range 20 {
			req := asks(fmt.Sprint("hello ", n), api.Options{ToolChoice: api.ToolsAny, MaxTokens: 60})
			req.Tools = []content.Tool{list}
			answer, err := send(t, l.responses(openai.Options{}), req)
			require.NoError(t, err)
			if answer.Blocks.Len() > 1 {
				return
			}
		}
		t.Fatal("no answer had several items")
	})

	t.Run("an assistant's message of another API is taken by Responses (H2)", func(t *testing.T) {
		req := asks("hello", api.Options{MaxTokens: 4})
		req.Messages = append(req.Messages, content.Message{Role: content.Assistant, Blocks: content.Words("Hi")}, content.Message{Role: content.User, Blocks: content.Words("and?")})
		_, err := send(t, l.responses(openai.Options{}), req)
		require.NoError(t, err)
	})

	t.Run("an argument that may be anything is declared to each API (H3)", func(t *testing.T) {
		for name, p := range l.all() {
			req := asks("hello", api.Options{MaxTokens: 8, ToolChoice: api.ToolsAny})
			req.Tools = []content.Tool{{Name: "f", Schema: `{"type":"object","properties":{"a":true}}`}}
			_, err := send(t, p, req)
			require.NoError(t, err, name)
		}
	})

	t.Run("a context that is too long is told by each API (H4)", func(t *testing.T) {
		for name, p := range l.all() {
			_, err := send(t, p, asks(strings.Repeat("a long story ", 4000), api.Options{MaxTokens: 8}))
			require.ErrorIs(t, err, api.ErrContextTooLong, name)
		}
	})

	t.Run("a stop sequence is the reason, also where it comes first (H5, H6)", func(t *testing.T) {
		letters := strings.Split("a e i o u b < c d s t r n m l k h .", " ")
		stopped := 0
		for n := range 12 {
			answer, err := send(t, l.messages(anthropic.Options{}), asks(fmt.Sprint("hello ", n), api.Options{MaxTokens: 30, StopSequences: letters}))
			require.NoError(t, err)
			if answer.Stop == content.StopSequence {
				stopped++
			}
		}
		require.Positive(t, stopped)
	})

	t.Run("a call that the request forbids is not executed (H7)", func(t *testing.T) {
		executed := 0
		tool := executor.Func("ls", "Lists files.", func(_ context.Context, _ struct {
			P string `json:"p"`
		}) (string, error) {
			executed++
			return "none", nil
		})
		a := executor.Agent{
			Provider: l.messages(anthropic.Options{}), Tools: []dag.Tool{tool}, Limits: executor.Limits{Turns: 4},
			Options: api.Options{ToolChoice: api.ToolsNone, MaxTokens: 60},
		}
		for n := range 2 {
			_, err := a.Run(t.Context(), dag.New().User(fmt.Sprint("hello ", n)))
			require.NoError(t, err)
		}
		require.Zero(t, executed)
	})

	t.Run("an answer of Responses that reached MaxTokens is cut, and a small MaxTokens is sent (H8, H9)", func(t *testing.T) {
		for _, whole := range []bool{false, true} {
			req := asks("hello", api.Options{MaxTokens: 5, ToolChoice: api.ToolsAny})
			req.Tools = []content.Tool{list}
			answer, err := send(t, l.responses(openai.Options{NoStream: whole}), req)
			require.NoError(t, err)
			require.Equal(t, content.StopMaxTokens, answer.Stop)
			require.LessOrEqual(t, answer.Usage.Output, int64(6))
			require.Empty(t, answer.Repairs)
		}
	})

	t.Run("tokens are counted as they are used, where the server counts", func(t *testing.T) {
		req := asks("hello "+strings.Repeat("again ", 50), api.Options{MaxTokens: 4})
		req.Tools = []content.Tool{list}
		for name, p := range l.all() {
			n, err := api.CountTokens(t.Context(), p, req)
			require.NoError(t, err, name)
			answer, err := send(t, p, req)
			require.NoError(t, err, name)
			if !n.Estimated {
				require.Equal(t, answer.Usage.Total()-answer.Usage.Output, n.Input, name)
			}
			require.Equal(t, name == "chat", n.Estimated, name)
		}
	})

	t.Run("an error has its type (H11)", func(t *testing.T) {
		for name, p := range l.all() {
			_, err := send(t, p, asks("hello", api.Options{Body: `{"temperature":"warm"}`}))
			var failure *api.Error
			require.ErrorAs(t, err, &failure, name)
			require.NotEqual(t, "400", failure.Type, name)
			require.NotEmpty(t, failure.Type, name)
		}
	})
}
