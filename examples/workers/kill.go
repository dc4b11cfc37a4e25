package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor/durable"
	"github.com/plait-dev/plait/node"
)

// customers is how many clients order at the same time.
const customers = 12

// killed is a shop whose processes are killed at random moments, and the customers of it.
type killed struct {
	database, books string
	out             io.Writer

	mu       sync.Mutex // guards the fields below
	services []string   // the addresses of the running services
	promised []string   // the orders whose client was told that they are done
	cut      int        // connections that were lost
	over     bool
}

// killAll runs a shop, kills its processes so many times under load, and checks what became of every order.
func killAll(ctx context.Context, database string, kills int, out io.Writer) error {
	folder, err := os.MkdirTemp("", "plait-shop-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	k := &killed{database: database, books: filepath.Join(folder, "books"), out: out}
	if database == "" {
		k.database = filepath.Join(folder, "shop.db")
	}

	var started processes
	defer func() { _ = started.end() }() // the check is done
	begun := time.Now()
	shop := k.open()
	for _, p := range shop {
		if err := p.start(ctx, &started); err != nil {
			return err
		}
	}

	var ordering sync.WaitGroup
	failures := make(chan error, customers)
	for n := range customers {
		ordering.Go(func() { failures <- k.customer(ctx, n) })
	}
	for n := range kills {
		if err := k.work(); err != nil {
			return err
		}
		p := shop[rand.N(len(shop))]
		if err := p.again(ctx, &started); err != nil {
			return err
		}
		if (n+1)%50 == 0 {
			fmt.Fprintln(out, n+1, "kills")
		}
	}

	// The last orders are finished.
	k.mu.Lock()
	k.over = true
	k.mu.Unlock()
	ordering.Wait()
	close(failures)
	for err := range failures {
		if err != nil {
			return err
		}
	}
	return k.check(ctx, shop, time.Since(begun))
}

// work waits for a random moment, and until another order is done: on a busy machine, processes need time to start.
func (k *killed) work() error {
	before := k.done()
	time.Sleep(time.Duration(50+rand.N(400)) * time.Millisecond)
	for begun := time.Now(); k.done() == before; time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > 2*time.Minute {
			return errors.New("the shop stands still")
		}
	}
	return nil
}

// done returns how many orders are done.
func (k *killed) done() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.promised)
}

// staff is a process of the shop that is started again whenever it was killed.
type staff struct {
	*killed
	role    string
	args    []string
	process *process
	address string // of a service
	kills   int
}

// open returns the processes of the shop.
func (k *killed) open() (all []*staff) {
	for role, n := range map[string]int{"service": 2, "runner": 2, "clerk": 3} {
		args := []string{k.database}
		if role == "clerk" {
			args = append(args, k.books)
		}
		for range n {
			all = append(all, &staff{killed: k, role: role, args: args})
		}
	}
	return all
}

// start starts the process.
func (s *staff) start(ctx context.Context, started *processes) (err error) {
	if s.process, err = started.start(ctx, append([]string{s.role}, s.args...)...); err != nil || s.role != "service" {
		return err
	}

	// A service prints its address.
	line, err := bufio.NewReader(s.process.out).ReadString('\n')
	if err != nil {
		return errors.New("a service has ended")
	}
	s.address = strings.TrimSpace(line)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.services = append(s.services, s.address)
	return nil
}

// again kills the process, and starts another one.
func (s *staff) again(ctx context.Context, started *processes) error {
	s.mu.Lock()
	s.services = slices.DeleteFunc(s.services, func(a string) bool { return a == s.address })
	s.mu.Unlock()
	if err := s.process.kill(); err != nil {
		return err
	}
	s.kills++
	return s.start(ctx, started)
}

// customer orders until the load is over. An order whose connection is lost is sent again, to any service, until the
// client learns that it is done.
func (k *killed) customer(ctx context.Context, n int) error {
	for i := 0; ; i++ {
		number := fmt.Sprintf("A-%d-%d-%d", os.Getpid(), n, i) // the database may have orders of an earlier time
		for {
			done, err := k.ask(ctx, number)
			if err != nil {
				return err
			}
			if done {
				break
			}
		}

		k.mu.Lock()
		k.promised = append(k.promised, number)
		over := k.over
		k.mu.Unlock()
		if over {
			return nil
		}
	}
}

// ask sends an order to a service, and reports whether it is done. It is not if the connection was lost.
func (k *killed) ask(ctx context.Context, number string) (done bool, err error) {
	k.mu.Lock()
	service := ""
	if len(k.services) > 0 {
		service = k.services[rand.N(len(k.services))]
	}
	k.mu.Unlock()

	body := fmt.Sprintf(`{"threadId":%q,"runId":"1","messages":[{"id":"m","role":"user","content":%q}]}`, number, number)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, service, strings.NewReader(body))
	if err != nil {
		return false, err
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		k.lost()
		return false, ctx.Err()
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		k.lost()
		return false, ctx.Err()
	}

	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		data, _ := strings.CutPrefix(lines.Text(), "data: ")
		var event struct{ Type, Code string }
		switch _ = json.Unmarshal([]byte(data), &event); event.Type {
		case "RUN_FINISHED":
			return true, nil
		case "RUN_ERROR":
			return false, fmt.Errorf("order %s: %s", number, event.Code)
		}
	}
	k.lost()
	return false, ctx.Err()
}

// lost notes a lost connection, and waits a moment.
func (k *killed) lost() {
	k.mu.Lock()
	k.cut++
	k.mu.Unlock()
	time.Sleep(20 * time.Millisecond)
}

// counts is what became of the orders.
type counts struct {
	unfinished, invalid, twice, refundsMissing, refundsKeys, repeated, lettersTwice, lettersMissing, doubt int
}

// check reads every order from the database and the books, and prints a table.
func (k *killed) check(ctx context.Context, shop []*staff, took time.Duration) error {
	front, closeAll, err := open(ctx, k.database, nil)
	if err != nil {
		return err
	}
	defer closeAll() //nolint:errcheck // it was read only
	entries, err := readBooks(k.books)
	if err != nil {
		return err
	}

	var c counts
	for _, number := range k.promised {
		if err := c.order(ctx, front, number, entries); err != nil {
			return err
		}
	}

	t := tabwriter.NewWriter(k.out, 0, 0, 2, ' ', 0)
	kills := map[string]int{}
	for _, s := range shop {
		kills[s.role] += s.kills
	}
	fmt.Fprintf(t, "processes killed\t%d\t%d services, %d runners, %d clerks\n",
		kills["service"]+kills["runner"]+kills["clerk"], kills["service"], kills["runner"], kills["clerk"])
	fmt.Fprintf(t, "connections lost\t%d\tthe client asked again\n", k.cut)
	fmt.Fprintf(t, "orders\t%d\tin %s\n", len(k.promised), took.Round(time.Second))
	fmt.Fprintf(t, "refunds executed again\t%d\twith the same key: the bank refunds once\n", c.repeated)
	fmt.Fprintf(t, "letters in doubt\t%d\tthe model was told so\n", c.doubt)
	fmt.Fprintf(t, "must be 0:\t\t\n")
	fmt.Fprintf(t, "  orders lost\t%d\tthe client was told that they are done\n", c.unfinished)
	fmt.Fprintf(t, "  orders with two runs\t%d\t\n", c.twice)
	fmt.Fprintf(t, "  damaged conversations\t%d\tor a call without exactly one result\n", c.invalid)
	fmt.Fprintf(t, "  refunds missing\t%d\t\n", c.refundsMissing)
	fmt.Fprintf(t, "  refunds with two keys\t%d\t\n", c.refundsKeys)
	fmt.Fprintf(t, "  letters sent twice\t%d\t\n", c.lettersTwice)
	fmt.Fprintf(t, "  letters missing\t%d\tand not in doubt\n", c.lettersMissing)
	if err := t.Flush(); err != nil {
		return err
	}
	if c.unfinished+c.twice+c.invalid+c.refundsMissing+c.refundsKeys+c.lettersTwice+c.lettersMissing > 0 {
		return errors.New("something was lost or repeated")
	}
	return nil
}

// order adds what became of an order.
func (c *counts) order(ctx context.Context, front *durable.Engine, number string, entries map[string][]string) error {
	runs, err := front.Runs(ctx, durable.RunsRequest{Conversation: number})
	if err != nil {
		return err
	}
	stored, err := front.Store().Conversation(ctx, number)
	if err != nil {
		return err
	}
	d := stored.DAG()

	add := func(n *int, is bool) {
		if is {
			*n++
		}
	}
	add(&c.twice, len(runs) > 1)
	add(&c.unfinished, len(runs) == 0 || runs[0].State != durable.Done || d.Text() != "It was refunded.")
	doubt, whole := results(d)
	add(&c.invalid, !whole)
	add(&c.doubt, doubt)

	refunds, letters := entries["refund "+number], entries["letter "+number]
	add(&c.refundsMissing, len(refunds) == 0)
	add(&c.repeated, len(refunds) > 1)
	add(&c.refundsKeys, len(slices.Compact(slices.Sorted(slices.Values(refunds)))) > 1)
	add(&c.lettersTwice, len(letters) > 1)
	add(&c.lettersMissing, len(letters) == 0 && !doubt)
	return nil
}

// results reports whether a call is in doubt, and whether the conversation is whole: valid, with one result for each of
// two calls.
func results(d dag.DAG) (doubt, whole bool) {
	results := 0
	for _, n := range d.Nodes() {
		if e, is := n.Payload().(node.ToolExecution); is && e.Result.Text() == content.OutcomeUnknown {
			doubt = true
		}
		if m, is := n.Message(); is && m.Role == content.User {
			results += len(m.Blocks.ToolResults())
		}
	}
	return doubt, results == 2 && len(d.Validate()) == 0 && len(d.OpenCalls()) == 0
}

// readBooks returns the keys of the entries, by what they are and their order.
func readBooks(path string) (map[string][]string, error) {
	data, err := os.ReadFile(path)
	entries := map[string][]string{}
	for line := range strings.Lines(string(data)) {
		what, key, _ := strings.Cut(strings.TrimSpace(line), " A-")
		number, key, _ := strings.Cut(key, " ")
		entries[what+" A-"+number] = append(entries[what+" A-"+number], key)
	}
	return entries, err
}
