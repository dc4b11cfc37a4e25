package executor

import "github.com/plait-dev/plait/internal/shared"

// binding is what the conversation of a run declares, and the functions of its tools.
type binding struct {
	shared   shared.Transcript // of the conversation or an earlier one; held to make the next one cost only its new nodes
	bound    toolset           // the tools that can be called
	unbound  []string          // the declared tools without a function, which requests leave out
	prompt   string            // the agent's prompt for this run
	declared bool              // the conversation has the agent's tools and prompt
	started  bool              // it has, and it has the run's RunStart node or needs none
	strict   bool              // a declared tool without a function is an error
	single   bool              // this is a single tool phase, and no run of a model
}

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
