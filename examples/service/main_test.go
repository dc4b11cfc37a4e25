package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/store"
	"github.com/plait-dev/plait/store/sqlite"
)

// running is a service in this process.
type running struct {
	url  string
	stop func() error
}

// run starts the service on a database.
func run(file string, model api.Provider) (running, error) {
	listener, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		return running{}, err
	}
	ctx, interrupt := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, listener, file, model) }()
	return running{"http://" + listener.Addr().String(), func() error {
		interrupt()
		return <-ended
	}}, nil
}

// start serves a database until the test ends, and returns the URL.
func start(t *testing.T, file string, model api.Provider) string {
	r, err := run(file, model)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.stop()) })
	return r.url
}

func post(url, text string) string {
	return answered(http.Post(url, "application/json", strings.NewReader(fmt.Sprintf(`{"text": %q}`, text))))
}

func read(url string) string { return answered(http.Get(url)) }

// answered returns the status and the body of a response.
func answered(res *http.Response, err error) string {
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	return fmt.Sprintln(res.StatusCode) + string(text)
}

// last returns the last event of a response.
func last(response string) string {
	events := strings.Split(strings.TrimSpace(response), "\n\n")
	return events[len(events)-1]
}

func Example() {
	os.Unsetenv("ANTHROPIC_API_KEY")
	dir, err := os.MkdirTemp("", "service")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)

	for _, text := range []string{"Hello", "Hello again"} { // a restart in between loses nothing
		service, err := run(filepath.Join(dir, "sessions.db"), model())
		if err != nil {
			panic(err)
		}
		fmt.Println(last(post(service.url+"/sessions/a", text)))
		if err := service.stop(); err != nil {
			panic(err)
		}
	}
	// Output:
	// event: done
	// data: "Message 1: Hello"
	// event: done
	// data: "Message 3: Hello again"
}

// database returns the path of a new database.
func database(t *testing.T) string { return filepath.Join(t.TempDir(), "sessions.db") }

func TestWrongRequestsAreRefused(t *testing.T) {
	url := start(t, database(t), model())
	require.Contains(t, post(url+"/sessions/a", ""), "400")
	require.Contains(t, answered(http.Post(url+"/sessions/a", "application/json", strings.NewReader("no JSON"))), "400")
	require.Contains(t, post(url+"/sessions/"+strings.Repeat("a", 201), "x"), "400")
	require.Contains(t, read(url+"/sessions/none"), "404")
	require.Contains(t, read(url+"/sessions/none/events"), "404")
	require.Contains(t, read(url+"/sessions/a%0Ab"), "400")
}

func TestASessionIsShownAsAPage(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "")
	url := start(t, database(t), model())
	require.Contains(t, post(url+"/sessions/a", "What time is it?"), "event: tool\ndata: \"now\"\n")
	require.Contains(t, read(url+"/sessions/a"), "What time is it?")
	require.Contains(t, read(url+"/sessions/a/events"), "event: done")
}

// waiting returns a turn that reports that the model was asked, and answers when it is released.
func waiting(asked, release chan struct{}) apitest.Turn {
	return apitest.Func(func(api.Request) apitest.Turn {
		close(asked)
		<-release
		return apitest.Say("the first answer")
	})
}

// An answer does not need the connection, and a message that comes meanwhile is read by the same run.
func TestAMessageDuringAnAnswerIsReadByTheSameRun(t *testing.T) {
	asked, release := make(chan struct{}), make(chan struct{})
	file := database(t)
	url := start(t, file, apitest.NewScript(waiting(asked, release), apitest.Say("the second answer")))

	// The first client hangs up as soon as its message is accepted.
	res, err := http.Post(url+"/sessions/a", "application/json", strings.NewReader(`{"text": "the first message"}`))
	require.NoError(t, err)
	line, err := bufio.NewReader(res.Body).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "event: accepted\n", line)
	require.NoError(t, res.Body.Close())

	<-asked
	res, err = http.Post(url+"/sessions/a", "application/json", strings.NewReader(`{"text": "the second message"}`))
	require.NoError(t, err)
	close(release)
	require.Equal(t, "event: done\ndata: \"the second answer\"", last(answered(res, nil)))

	var texts []string
	for _, m := range stored(t, file, "a") {
		texts = append(texts, m.Blocks.Text())
	}
	require.Equal(t, []string{"the first message", "the first answer", "the second message", "the second answer"}, texts)
}

func TestShutdownWaitsForAnswers(t *testing.T) {
	asked, release := make(chan struct{}), make(chan struct{})
	file := database(t)
	service, err := run(file, apitest.NewScript(waiting(asked, release)))
	require.NoError(t, err)
	response, ended := make(chan string), make(chan error)
	go func() { response <- post(service.url+"/sessions/a", "Hello") }()
	<-asked

	// The answer comes after the service has stopped listening.
	go func() { ended <- service.stop() }()
	for {
		conn, err := net.Dial("tcp", strings.TrimPrefix(service.url, "http://"))
		if err != nil {
			break
		}
		require.NoError(t, conn.Close())
	}
	close(release)
	require.Contains(t, <-response, "event: done\ndata: \"the first answer\"\n")
	require.NoError(t, <-ended)
	require.Len(t, stored(t, file, "a"), 2)
}

// stored returns the messages of a session, which must be valid.
func stored(t *testing.T, file, session string) []content.Message {
	db, err := sqlite.Open(t.Context(), file, nil)
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, db.Check(t.Context()))
	c, err := store.New(db).Head(t.Context(), session, store.Main)
	require.NoError(t, err)
	require.True(t, c.DAG().Verify().OK())
	require.Empty(t, c.DAG().Validate())
	return c.DAG().Messages()
}

func TestMain(m *testing.M) {
	if os.Getenv(child) != "" { // this process is the service, see kill_test.go
		main()
		return
	}
	os.Exit(m.Run())
}
