package mcp

// Stale reports whether the server has said that its list changed.
func (s *Server) Stale() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stale
}
