package crashtest

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// The kinds of events.
const (
	serving  = "serve"   // of a process: SIGTERM is handled from now on; it is not part of a history
	claimed  = "claim"   // of a run or a call; the detail is the number of the claim
	held     = "hold"    // of a call: the worker has got its claim, and checks the lease
	started  = "start"   // of a call
	finished = "finish"  // of a call
	accepted = "accept"  // by the store; the detail is the sum of the result
	consumed = "consume" // of a continuation
	rested   = "rest"    // of a run: it waits, or has ended
	frozen   = "frozen"  // of a process
	lost     = "lost"    // of a process: it was killed
)

// event is an action of a process, or its freeze or death.
type event struct {
	at      time.Time
	process string
	kind    string
	key     string // of a run, a pause or a call; "-" is none
	detail  string // "-" is none
}

func (e event) String() string {
	return fmt.Sprintf("%d %s %s %s %s", e.at.UnixNano(), e.process, e.kind, e.key, e.detail)
}

func parseEvent(line string) (e event, err error) {
	var nanos int64
	_, err = fmt.Sscan(line, &nanos, &e.process, &e.kind, &e.key, &e.detail)
	e.at = time.Unix(0, nanos)
	return e, err
}

// history lists the events, in order. A start is written before it happens, every other event after it. Thus the order
// of writes by several processes cannot show a fault where there is none.
type history []event

// faults returns the violations of the promises of store.Runs.
//
// A call may start after its result was accepted, if it was claimed earlier. Between the claim and the start, a worker
// with an ended lease may bring the result. It is a fault only if the lease had ended when the worker got the claim. In
// a process paused by the system, the lease may also end between the worker's check and the start: nothing is promised
// then.
func (h history) faults() (found []string) {
	sums, consumptions := map[string]string{}, map[string]int{}
	claims, late := map[string]time.Time{}, map[string]bool{}

	for _, e := range h {
		switch e.kind {
		case claimed:
			claims[e.process+" "+e.key] = e.at
		case held:
			// Late: the lease had ended before the worker got its claim.
			late[e.process+" "+e.key] = e.at.Sub(claims[e.process+" "+e.key]) >= lease
		case started:
			if sums[e.key] != "" && late[e.process+" "+e.key] {
				found = append(found, "started after acceptance:"+h.of(e.key))
			}

		case accepted:
			if sums[e.key] != "" && sums[e.key] != e.detail {
				found = append(found, "accepted twice:"+h.of(e.key))
			}
			sums[e.key] = e.detail
		case consumed:
			if consumptions[e.key]++; consumptions[e.key] == 2 {
				found = append(found, "consumed twice:"+h.of(e.key))
			}
		}
	}
	return found
}

// of returns the events of a key, for messages.
func (h history) of(key string) (text string) {
	for _, e := range h {
		if e.key == key {
			text += "\n\t" + e.String()
		}
	}
	return text
}

// overtaken returns the number of calls started after their result was accepted, for any reason.
func (h history) overtaken() (n int) {
	sums := map[string]bool{}
	for _, e := range h {
		if e.kind == started && sums[e.key] {
			n++
		}
		if e.kind == accepted {
			sums[e.key] = true
		}
	}
	return n
}

// accepted returns the sums of the accepted results by call.
func (h history) accepted() map[string]string {
	sums := map[string]string{}
	for _, e := range h {
		if e.kind == accepted {
			sums[e.key] = e.detail
		}
	}
	return sums
}

// repeated returns how many starts of calls were not the first one.
func (h history) repeated() (n int) {
	seen := map[string]bool{}
	for _, e := range h {
		if e.kind == started && seen[e.key] {
			n++
		}
		if e.kind == started {
			seen[e.key] = true
		}
	}
	return n
}

// stalls returns the times without progress: for each piece of work of a killed or frozen process, the time until
// another process claimed it.
func (h history) stalls() (list []time.Duration) {
	// holders has the process of the latest claim, by piece of work; gone has the time of a process's loss or freeze.
	holders, gone := map[string]string{}, map[string]time.Time{}
	for _, e := range h {
		switch e.kind {
		case lost, frozen:
			gone[e.process] = e.at
		case claimed:
			if since, is := gone[holders[e.key]]; is && holders[e.key] != e.process {
				list = append(list, e.at.Sub(since))
			}
			holders[e.key] = e.process
		case accepted, rested: // the work is done: its next claim is another piece
			delete(holders, e.key)
		}
	}
	slices.Sort(list)
	return list
}

// took returns the time between the first event and the last run's end.
func (h history) took() time.Duration {
	last := 0
	for i, e := range h {
		if e.kind == rested && strings.HasPrefix(e.detail, "done") {
			last = i
		}
	}
	if len(h) == 0 {
		return 0
	}
	return h[last].at.Sub(h[0].at)
}
