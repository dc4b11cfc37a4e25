package live

import (
	"net/http"
	"time"
)

// Origin is what is known of the place that a conversation comes from, such as a file.
type Origin struct {
	// Changed is when the conversation changed there. The page shows how long ago that was. Zero is unknown.
	Changed time.Time
	// Run is the state of a run of this conversation that another process executes, such as "queued". As long as it is
	// set, pages cannot continue the conversation. Defaults to none.
	Run string
	// Detail is more about that run, such as why it is in that state. Defaults to none.
	Detail string
}

// origin is an Origin in an event "activity".
type origin struct {
	Changed string `json:"changed,omitempty"`
	Run     string `json:"run,omitempty"`
	Detail  string `json:"detail,omitempty"`
}

// SetOrigin replaces what the page shows of the place that the conversation comes from.
func (s *Server) SetOrigin(o Origin) {
	s.mu.Lock()
	defer s.mu.Unlock()

	next := origin{Run: o.Run, Detail: o.Detail}
	if !o.Changed.IsZero() {
		next.Changed = o.Changed.UTC().Format(time.RFC3339Nano)
	}
	if s.origin != next {
		s.origin = next
		s.publish("activity", activity{Origin: &next})
	}
}

// elsewhere refuses to continue a conversation that another process runs. s.mu must be held.
func (s *Server) elsewhere() *refusal {
	if s.origin.Run == "" {
		return nil
	}
	return refuse(http.StatusConflict, "running_elsewhere",
		"another process runs this conversation, and its run is "+s.origin.Run)
}
