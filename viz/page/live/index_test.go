package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/dag"
)

// indexed is an index at a real address. It opens every conversation but "gone" with one message, its key.
type indexed struct {
	*Index
	site   *site
	opened atomic.Int32
	ended  atomic.Int32
}

func serveIndex(t *testing.T, keys ...string) *indexed {
	t.Helper()
	x := &indexed{}
	x.Index = NewIndex(&IndexOptions{
		List: func(context.Context) (list []Entry, err error) {
			for _, key := range keys {
				list = append(list, Entry{Key: key, State: "paused", Detail: "1 call waits", Waits: true, Changed: time.Unix(7, 0)})
			}
			return list, nil
		},
		Open: func(ctx context.Context, key string) (*Server, error) {
			if key == "gone" {
				return nil, errors.New("no such conversation")
			}
			x.opened.Add(1)
			context.AfterFunc(ctx, func() { x.ended.Add(1) })
			return New(dag.New().User(key), nil), nil
		},
	})
	server := httptest.NewServer(x)
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(func() {
		require.NoError(t, x.Close())
		client.CloseIdleConnections()
		server.Close()
	})
	x.site = &site{x.base, server.URL, client}
	return x
}

// of returns the page of a conversation.
func (x *indexed) of(key string) *site {
	return &site{x.base, x.site.url + "/" + strings.TrimSuffix(pathOf(key), "/"), x.site.client}
}

func TestIndexOfAThousandConversationsLinksToEach(t *testing.T) {
	var keys []string
	for i := range 1000 {
		keys = append(keys, fmt.Sprint("run ", i))
	}
	x := serveIndex(t, keys...)
	status, text := x.site.ask(t, http.MethodGet, "list", "")
	require.Equal(t, http.StatusOK, status)
	var got struct{ Entries []struct{ Key, Path string } }
	require.NoError(t, json.Unmarshal([]byte(text), &got))
	require.Len(t, got.Entries, 1000)
	require.Less(t, len(text), 200<<10)
	for i, e := range got.Entries {
		require.Equal(t, keys[i], e.Key)
		require.Equal(t, pathOf(keys[i]), e.Path)
	}
	require.Zero(t, x.opened.Load(), "a conversation is read when its page is opened")

	last := x.of(keys[999]).listen(t)
	last.knows(dag.New())
	require.EqualValues(t, 1, x.opened.Load())
}

func TestIndexListsAndOpensConversations(t *testing.T) {
	hostile := `a/b?c#d "<script>" ü%2F..`
	x := serveIndex(t, hostile)
	status, text := x.site.ask(t, http.MethodGet, "list", "")
	require.Equal(t, http.StatusOK, status)
	var got struct{ Entries []map[string]any }
	require.NoError(t, json.Unmarshal([]byte(text), &got))
	require.Equal(t, []map[string]any{{
		"key": hostile, "path": pathOf(hostile), "state": "paused", "detail": "1 call waits", "waits": true,
		"changed": "1970-01-01T00:00:07Z",
	}}, got.Entries)

	page := x.of(hostile)
	e := page.listen(t)
	e.until(isIdle)
	require.Len(t, e.nodes, 1)
	status, text = page.ask(t, http.MethodGet, "copy?as=json", "")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, text, `a/b?c#d`)
	require.EqualValues(t, 1, x.opened.Load())
}

func TestIndexOpensNothingWithoutTheToken(t *testing.T) {
	x := serveIndex(t, "a")
	page := x.of("a")
	for _, path := range []string{"events", "list", "copy?as=json", "fork", "nothing"} {
		for _, s := range []*site{x.site, page} {
			req := s.with(t, http.MethodGet, path, "")
			req.Header.Set("Authorization", "Bearer wrong")
			res, _ := s.send(t, req)
			require.NotEqual(t, http.StatusOK, res.StatusCode, path)
		}
	}
	status, text := page.ask(t, http.MethodGet, "", "")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, text, `"title":"a","live":true,"up":"../../"`)
	for name, change := range map[string]func(*http.Request){
		"host":   func(r *http.Request) { r.Host = "other.example" },
		"origin": func(r *http.Request) { r.Header.Set("Origin", "http://other.example") },
	} {
		req := page.with(t, http.MethodGet, "copy?as=json", "")
		change(req)
		res, _ := page.send(t, req)
		require.Equal(t, http.StatusForbidden, res.StatusCode, name)
		require.NotEmpty(t, res.Header.Get("Content-Security-Policy"))
	}
	require.Zero(t, x.opened.Load())
}

func TestConversationThatCannotBeOpenedSaysWhy(t *testing.T) {
	x := serveIndex(t)
	status, text := x.of("gone").ask(t, http.MethodGet, "copy?as=json", "")
	require.Equal(t, http.StatusNotFound, status)
	require.JSONEq(t, `{"error":"cannot_open","message":"no such conversation"}`, text)
	status, _ = x.site.ask(t, http.MethodGet, "c/*/events", "")
	require.Equal(t, http.StatusNotFound, status)
}

func TestPanicOfListAndOpenIsARefusal(t *testing.T) {
	x := serveIndex(t)
	x.options.List = func(context.Context) ([]Entry, error) { panic("no such table") }
	x.options.Open = func(context.Context, string) (*Server, error) { panic("no such file") }

	status, text := x.site.ask(t, http.MethodGet, "list", "")
	require.Equal(t, http.StatusInternalServerError, status)
	require.JSONEq(t, `{"error":"cannot_list","message":"the list panicked: no such table"}`, text)
	status, text = x.of("a").ask(t, http.MethodGet, "copy?as=json", "")
	require.Equal(t, http.StatusNotFound, status)
	require.JSONEq(t, `{"error":"cannot_open","message":"opening it panicked: no such file"}`, text)
	x.mu.Lock()
	defer x.mu.Unlock()
	require.Zero(t, x.pages["a"].used, "it can be swept")
}

func TestConversationIsOpenedOnceForAll(t *testing.T) {
	x := serveIndex(t)
	var all sync.WaitGroup
	for range 8 {
		req := x.of("a").with(t, http.MethodGet, "copy?as=json", "")
		all.Go(func() { x.site.send(t, req) })
	}
	all.Wait()
	require.EqualValues(t, 1, x.opened.Load())
}

func TestConversationsThatNobodyLooksAtAreClosed(t *testing.T) {
	x := serveIndex(t)
	e := x.of("looked at").listen(t)
	e.until(isIdle)
	for i := range maxPages + 1 {
		status, _ := x.of(fmt.Sprint(i)).ask(t, http.MethodGet, "copy?as=json", "")
		require.Equal(t, http.StatusOK, status)
	}
	x.closing.Wait()
	x.mu.Lock()
	defer x.mu.Unlock()
	require.Less(t, len(x.pages), maxPages)
	require.Contains(t, x.pages, "looked at")
}

func TestClosedIndexClosesItsConversations(t *testing.T) {
	x := serveIndex(t)
	e := x.of("a").listen(t)
	e.until(isIdle)
	require.NoError(t, x.Close())
	_, more := e.next()
	require.False(t, more)
	_, err := x.open("b")
	require.ErrorIs(t, err, errClosed)
}

func TestClosedIndexDoesNotWaitForOpen(t *testing.T) {
	opening := make(chan struct{})
	x := NewIndex(&IndexOptions{
		List: func(context.Context) ([]Entry, error) { return nil, nil },
		Open: func(ctx context.Context, _ string) (*Server, error) {
			close(opening)
			<-ctx.Done()
			return nil, ctx.Err()
		},
	})
	ended := make(chan error)
	go func() {
		_, err := x.open("slow")
		ended <- err
	}()
	<-opening
	require.NoError(t, x.Close())
	require.ErrorIs(t, <-ended, context.Canceled)
}
