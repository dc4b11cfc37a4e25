package agui

import (
	"context"
	"encoding/json"
	"sync"
)

// Shared is the state that a run shares with its client. It is safe for concurrent use.
type Shared struct {
	mu      sync.Mutex
	value   json.RawMessage
	changed bool // since it was last sent
}

type sharedKey struct{}

// State returns the state of a run. ctx is the context of a tool or a hook of the run. It returns nil outside a run of
// [Handler].
func State(ctx context.Context) *Shared {
	s, _ := ctx.Value(sharedKey{}).(*Shared)
	return s
}

// Decode reads the state into v, as json.Unmarshal does. The state comes from the client's last request, or from a
// later call of Set.
func (s *Shared) Decode(v any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return json.Unmarshal(s.value, v)
}

// Set replaces the state by v, as JSON. The client gets it with the next event of the run. Errors: those of
// json.Marshal.
func (s *Shared) Set(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	s.value, s.changed = data, true
	return nil
}

// take returns the state if it has changed since the last call, or nil.
func (s *Shared) take() json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.changed {
		return nil
	}
	s.changed = false
	return s.value
}
