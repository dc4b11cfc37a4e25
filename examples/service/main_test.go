package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/store"
	"github.com/plait-dev/plait/store/sqlite"
)

func post(url, body string) string {
	res, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	return fmt.Sprintln(res.StatusCode) + string(text)
}

func Example() {
	os.Unsetenv("ANTHROPIC_API_KEY")
	dir, err := os.MkdirTemp("", "service")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)

	for _, text := range []string{"Hello", "Hello again"} { // a restart in between loses nothing
		db, err := sqlite.Open(context.Background(), filepath.Join(dir, "sessions.db"), nil)
		if err != nil {
			panic(err)
		}
		server := httptest.NewServer(newService(model(), db).handler())
		fmt.Print(post(server.URL+"/sessions/a", `{"text": "`+text+`"}`))
		server.Close()
		if err := db.Close(); err != nil {
			panic(err)
		}
	}
	// Output:
	// 200
	// event: text
	// data: "Message "
	//
	// event: text
	// data: "1: "
	//
	// event: text
	// data: "Hello"
	//
	// event: done
	// data: "Message 1: Hello"
	//
	// 200
	// event: text
	// data: "Message "
	//
	// event: text
	// data: "3: "
	//
	// event: text
	// data: "Hello "
	//
	// event: text
	// data: "again"
	//
	// event: done
	// data: "Message 3: Hello again"
}

// start serves sessions in a database in memory until the test ends, and returns the URL.
func start(t *testing.T, model api.Provider) string {
	db, err := sqlite.Open(t.Context(), ":memory:", nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return startOn(t, db, model)
}

func startOn(t *testing.T, driver store.Driver, model api.Provider) string {
	server := httptest.NewServer(newService(model, driver).handler())
	t.Cleanup(server.Close)
	return server.URL
}

// read returns the status and the body of a page.
func read(t *testing.T, url string) (int, string) {
	res, err := http.Get(url)
	require.NoError(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(text)
}

func TestWrongRequestsAreRefused(t *testing.T) {
	url := start(t, model())

	require.Contains(t, post(url+"/sessions/a", `{}`), "400")
	require.Contains(t, post(url+"/sessions/a", `no JSON`), "400")
	require.Contains(t, post(url+"/sessions/"+strings.Repeat("a", 201), `{"text": "x"}`), "400")

	status, _ := read(t, url+"/sessions/none")
	require.Equal(t, http.StatusNotFound, status)
	status, _ = read(t, url+"/sessions/a%0Ab")
	require.Equal(t, http.StatusBadRequest, status)
}

func TestASessionIsShownAsAPage(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "")
	url := start(t, model())

	require.Contains(t, post(url+"/sessions/a", `{"text": "What time is it?"}`), "event: tool\ndata: \"now\"\n")
	_, page := read(t, url+"/sessions/a")
	require.Contains(t, page, "What time is it?")
}

// meeting is a store in which the first two that open a conversation wait for each other.
type meeting struct {
	store.Driver
	opened atomic.Int32
	both   sync.WaitGroup
}

func (m *meeting) Head(ctx context.Context, key, name string) (store.Head, error) {
	h, err := m.Driver.Head(ctx, key, name)
	if m.opened.Add(1) <= 2 {
		m.both.Done()
		m.both.Wait()
	}
	return h, err
}

var keptPath = regexp.MustCompile(`yours is kept: (/sessions/\w+\?head=(main~\w+))`)

func TestOneOfTwoMessagesAtOnceIsRefusedAndKept(t *testing.T) {
	m := &meeting{Driver: store.Memory()}
	m.both.Add(2)
	url := startOn(t, m, apitest.NewScript(apitest.Say("the only answer")))

	first, second := make(chan string), make(chan string)
	go func() { first <- post(url+"/sessions/a", `{"text": "the first message"}`) }()
	go func() { second <- post(url+"/sessions/a", `{"text": "the second message"}`) }()
	won, refused, lost := <-first, <-second, "the second message"
	if strings.HasPrefix(won, "409") {
		won, refused, lost = refused, won, "the first message"
	}
	require.Contains(t, won, "event: done\ndata: \"the only answer\"\n")
	require.True(t, strings.HasPrefix(refused, "409\nanother message was sent to this session at the same time"), refused)

	kept := keptPath.FindStringSubmatch(refused)
	require.NotNil(t, kept, refused)
	_, page := read(t, url+kept[1])
	require.Contains(t, page, lost)
	require.NotContains(t, page, "the only answer")
	_, page = read(t, url+"/sessions/a")
	require.Contains(t, page, "the only answer")
	require.NotContains(t, page, lost)
}

// waiting returns a turn that reports that the model was asked, and answers when it is released.
func waiting(asked, release chan struct{}) apitest.Turn {
	return apitest.Func(func(api.Request) apitest.Turn {
		close(asked)
		<-release
		return apitest.Say("the first answer")
	})
}

func TestAMessageDuringAnAnswerLeavesTheAnswerBeside(t *testing.T) {
	asked, release := make(chan struct{}), make(chan struct{})
	url := start(t, apitest.NewScript(waiting(asked, release), apitest.Say("the second answer")))

	response := make(chan string)
	go func() { response <- post(url+"/sessions/a", `{"text": "the first message"}`) }()
	<-asked
	second := post(url+"/sessions/a", `{"text": "the second message"}`)
	require.Contains(t, second, "event: done\ndata: \"the second answer\"\n")
	close(release)

	// Its text was sent before it could be saved, so the conflict is an event.
	first := <-response
	require.True(t, strings.HasPrefix(first, "200\n"), first)
	require.Contains(t, first, "event: conflict\ndata: \"another message was sent")
	require.NotContains(t, first, "event: done")
	kept := keptPath.FindStringSubmatch(first)
	require.NotNil(t, kept, first)
	_, page := read(t, url+kept[1])
	require.Contains(t, page, "the first answer")
	require.NotContains(t, page, "the second message")
}

// TestAfterACrashInAToolCallTheSessionContinues has a call without a result at the head of a session.
func TestAfterACrashInAToolCallTheSessionContinues(t *testing.T) {
	driver := store.Memory()
	c, err := store.New(driver, nil).Conversation(t.Context(), "a")
	require.NoError(t, err)
	call := apitest.Use("now", struct{}{})
	call.ID = "call_1"
	require.NoError(t, c.Append(t.Context(), dag.New().User("What time is it?").Assistant("", call)))

	model := apitest.NewScript(apitest.Say("I do not know."))
	require.Contains(t, post(startOn(t, driver, model)+"/sessions/a", `{"text": "And now?"}`), "event: done")
	c, err = c.Head(t.Context(), store.Main)
	require.NoError(t, err)
	require.Empty(t, c.DAG().Validate())
}

func TestShutdownWaitsForAnswers(t *testing.T) {
	asked, release := make(chan struct{}), make(chan struct{})
	file := filepath.Join(t.TempDir(), "sessions.db")
	listener, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	url := "http://" + listener.Addr().String()

	ctx, interrupt := context.WithCancel(t.Context())
	ended, response := make(chan error), make(chan string)
	go func() { ended <- serve(ctx, listener, file, apitest.NewScript(waiting(asked, release))) }()
	go func() { response <- post(url+"/sessions/a", `{"text": "Hello"}`) }()
	<-asked

	// The answer comes after the service has stopped listening.
	interrupt()
	for {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			break
		}
		require.NoError(t, conn.Close())
	}
	close(release)

	require.Contains(t, <-response, "event: done\ndata: \"the first answer\"\n")
	require.NoError(t, <-ended)
	db, err := sqlite.Open(t.Context(), file, nil)
	require.NoError(t, err)
	defer db.Close()
	c, err := store.New(db, nil).Conversation(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, "the first answer", c.DAG().Text())
}

func TestMain(m *testing.M) {
	if os.Getenv(child) != "" { // this process is the service, see kill_test.go
		main()
		return
	}
	os.Exit(m.Run())
}
