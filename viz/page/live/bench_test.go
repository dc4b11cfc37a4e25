package live

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

// BenchmarkWatch measures what Watch adds to each event of a run of 1,000 words, with nobody who looks, and with one and a hundred who
// read all at real connections. The baseline is the bare run.
func BenchmarkWatch(b *testing.B) {
	words := strings.Repeat("word ", 1000)
	for _, listeners := range []int{0, 1, 100} {
		b.Run(fmt.Sprintf("listeners=%d", listeners), func(b *testing.B) {
			d := dag.New().User("Talk.")
			s := New(d, nil)
			server := httptest.NewServer(s)
			defer server.Close()
			defer s.Close()
			listenAll(b, s, server.URL, listeners)
			run := func() iter.Seq2[executor.Event, error] {
				return executor.Stream(context.Background(), apitest.NewScript(apitest.Say(words)), d)
			}
			events := drain(run())
			for b.Loop() {
				s.Set(d) // else each run would add a head
				drain(s.Watch(run()))
			}
			watched := b.Elapsed()
			begin, rounds := time.Now(), 0
			for time.Since(begin) < 200*time.Millisecond {
				drain(run())
				rounds++
			}
			each := func(took time.Duration, rounds int) float64 { return float64(took) / float64(rounds*events) }
			with, bare := each(watched, b.N), each(time.Since(begin), rounds)
			b.ReportMetric(with-bare, "ns/event-added")
			b.ReportMetric(bare, "ns/event-bare")
		})
	}
}

// BenchmarkObserve is the same without a model and without connections: what the run itself waits for at each word.
func BenchmarkObserve(b *testing.B) {
	for _, listeners := range []int{0, 1, 100} {
		b.Run(fmt.Sprintf("listeners=%d", listeners), func(b *testing.B) {
			s := New(talk(), nil)
			defer s.Close()
			for range listeners {
				s.listeners[&listener{wake: make(chan struct{}, 1)}] = true
			}
			defer clear(s.listeners)
			w := &watch{Server: s}
			w.observe(executor.MessageStart{Turn: 1, Role: content.Assistant}, nil)
			word := executor.MessageDelta{Turn: 1, Event: api.Delta{Kind: api.DeltaText, Text: "word "}}
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				w.observe(word, nil)
				if n%maxQueue == 0 {
					for l := range s.listeners {
						l.queue, l.size, l.behind = l.queue[:0], 0, false
					}
					s.now.begin()
				}
			}
		})
	}
}

func drain(events iter.Seq2[executor.Event, error]) int {
	n := 0
	for range events {
		n++
	}
	return n
}

// listenAll lets n listen, who read all and keep nothing.
func listenAll(b *testing.B, s *Server, url string, n int) {
	ctx, stop := context.WithCancel(context.Background())
	client := &http.Client{Transport: &http.Transport{}}
	b.Cleanup(func() {
		stop()
		client.CloseIdleConnections()
	})
	for range n {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/events", nil)
		if err != nil {
			b.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+s.Token())
		res, err := client.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		go func() {
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}()
	}
}
