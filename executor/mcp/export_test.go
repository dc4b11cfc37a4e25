package mcp

// Stale reports whether the server has announced a change of its list.
func (s *Server) Stale() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changes != s.listed
}
