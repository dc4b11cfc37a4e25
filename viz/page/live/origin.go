package live

import (
	"net/http"
	"time"
)

// Origin describes the source of a conversation, such as a file.
type Origin struct {
	// Changed is the time of the last change at the source. The page shows the time since then. Zero is unknown.
	Changed time.Time
	// Run is the state of this conversation's run in another process, such as "queued". As long as it is set, pages
	// cannot continue the conversation. Defaults to none.
	Run string
	// Detail explains that state, for people. Defaults to none.
	Detail string
}

// origin is an Origin in an event "activity".
type origin struct {
	Changed string `json:"changed,omitempty"`
	Run     string `json:"run,omitempty"`
	Detail  string `json:"detail,omitempty"`
}

// SetOrigin replaces the origin shown on the page.
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

// elsewhere refuses to continue a conversation during a run in another process. s.mu must be held.
func (s *Server) elsewhere() *refusal {
	if s.origin.Run == "" {
		return nil
	}
	return refuse(http.StatusConflict, "running_elsewhere",
		"another process runs this conversation, and its run is "+s.origin.Run)
}
