package crashtest

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// The kinds of events.
const (
	claimed  = "claim"   // of a run or a call; the detail is the number of the claim
	started  = "start"   // of a call
	finished = "finish"  // of a call
	accepted = "accept"  // by the store; the detail is the sum of the result
	consumed = "consume" // of a continuation
	rested   = "rest"    // of a run: it waits, or is over
	frozen   = "frozen"  // of a process
	lost     = "lost"    // of a process: it was killed
)

// event is something that a process has done, or that was done to it.
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

// history is what has happened, in order. An event comes after what it tells of, except a start, which comes before: so no
// order of processes makes a fault of what was none.
type history []event

// faults returns what must not have happened.
func (h history) faults() (found []string) {
	sums, consumptions := map[string]string{}, map[string]int{}
	for _, e := range h {
		switch e.kind {
		case started:
			if sums[e.key] != "" {
				found = append(found, fmt.Sprintf("started after acceptance: %s in %s", e.key, e.process))
			}
		case accepted:
			if sums[e.key] != "" && sums[e.key] != e.detail {
				found = append(found, fmt.Sprintf("accepted twice: %s in %s", e.key, e.process))
			}
			sums[e.key] = e.detail
		case consumed:
			if consumptions[e.key]++; consumptions[e.key] == 2 {
				found = append(found, fmt.Sprintf("consumed twice: %s in %s", e.key, e.process))
			}
		}
	}
	return found
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

// stalls returns how long work stood still that a process had when it was killed or frozen, until somebody else claimed it.
func (h history) stalls() (list []time.Duration) {
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
		case accepted, rested:
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
