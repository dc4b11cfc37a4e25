package executor

// toolset holds the tools that a run can call, in the order of their declarations.
type toolset struct {
	tools []boundTool    // never reallocated: calls refer to the tasks in it
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

func newToolset(tools []boundTool) toolset {
	s := toolset{tools: tools}
	if len(tools) > maxUnindexed {
		s.index = make(map[string]int, len(tools))
		for i := range tools {
			s.index[tools[i].name] = i
		}
	}
	return s
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
