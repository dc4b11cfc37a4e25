package executor

// toolset holds the tools that a run can call, in the order of their declarations.
type toolset struct {
	tools []boundTool    // never reallocated, because calls refer to the tasks in it
	index map[string]int // in tools, by name; nil for a few tools, where a search is faster
}

// boundTool is a declared tool and its task.
type boundTool struct {
	name string
	tool Tool // nil if only Agent.Handler executes it
	task task // its fn is nil until the tool is called
}

// maxUnindexed is how many tools a toolset searches one by one.
const maxUnindexed = 8

// newToolset returns an empty toolset with room for n tools.
func newToolset(n int) toolset {
	s := toolset{tools: make([]boundTool, 0, n)}
	if n > maxUnindexed {
		s.index = make(map[string]int, n)
	}
	return s
}

func (s *toolset) add(b boundTool) {
	if s.index != nil {
		s.index[b.name] = len(s.tools)
	}
	s.tools = append(s.tools, b)
}

// get returns the tool with that name, or nil.
func (s *toolset) get(name string) *boundTool {
	if s.index != nil {
		if i, has := s.index[name]; has {
			return &s.tools[i]
		}
		return nil
	}
	for i := range s.tools {
		if s.tools[i].name == name {
			return &s.tools[i]
		}
	}
	return nil
}
