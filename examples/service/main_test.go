package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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
		s := newService(model(), dir)
		server := httptest.NewServer(s.handler())
		fmt.Print(post(server.URL+"/sessions/a", `{"text": "`+text+`"}`))
		server.Close()
		if err := s.close(); err != nil {
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

func TestWrongRequestsAreRefused(t *testing.T) {
	s := newService(model(), t.TempDir())
	defer s.close()
	server := httptest.NewServer(s.handler())
	defer server.Close()

	require.Contains(t, post(server.URL+"/sessions/a", `{}`), "400")
	require.Contains(t, post(server.URL+"/sessions/a", `no JSON`), "400")
	require.Contains(t, post(server.URL+"/sessions/..%2Fa", `{"text": "x"}`), "400")
	require.Contains(t, post(server.URL+"/sessions/A", `{"text": "x"}`), "the session's id must match")

	res, err := http.Get(server.URL + "/sessions/none")
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.StatusNotFound, res.StatusCode)
}

func TestASessionIsShownAsAPage(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "")
	s := newService(model(), t.TempDir())
	defer s.close()
	server := httptest.NewServer(s.handler())
	defer server.Close()

	require.Contains(t, post(server.URL+"/sessions/a", `{"text": "What time is it?"}`), "event: tool\ndata: \"now\"\n")
	res, err := http.Get(server.URL + "/sessions/a")
	require.NoError(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Contains(t, string(text), "What time is it?")
}
