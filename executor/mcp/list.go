package mcp

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/internal/unwrap"
)

var (
	// errToolName: another tool has this name, or one that differs by letter case, separators or invisible characters
	// alone.
	errToolName = errors.New("another tool has this name")

	// errToolNew: the server lists a tool that it did not list at [Connect].
	errToolNew = errors.New("the tool is new since the connection was made")

	// errToolChanged: the server lists a tool with another definition than the program was given.
	errToolChanged = errors.New("the server has changed the tool's definition")

	// errToolWithdrawn: the server no longer lists the called tool with the definition that the program was given. The
	// call was not sent.
	errToolWithdrawn = errors.New("the server has withdrawn the tool or changed its definition: it was not called")
)

// recordName is the name of the record (dag.DAG.Custom) with which [Server.Hook] reports what it changed in a
// conversation. Its value is a record.
const recordName = "mcp.tools"

// record reports a change of the tools of a conversation.
type record struct {
	// Server is [Options.Name].
	Server string `json:"server,omitempty"`
	// Withdrawn has the names of the tools that were withdrawn, because the server lists them no longer, or with
	// another definition.
	Withdrawn []string `json:"withdrawn,omitempty"`
}

// owned is a tool of a server, with one definition. Its identity is the pointer: a tool whose definition changes is
// another one.
type owned struct {
	executor.Tool
	server *Server
	name   string          // the server's name for it
	def    content.Tool    // what the model reads
	effect executor.Effect // from the server's hints
}

// Unwrap returns the tool with its further methods.
func (o *owned) Unwrap() executor.Tool { return o.Tool }

// Err returns nil: the server's method tool has checked the tool already.
func (*owned) Err() error { return nil }

// Owner returns the server. A run is refused if a server's tool would take the place of another owner's.
func (o *owned) Owner() any { return o.server }

// same reports whether two tools are one tool with one definition.
func (o *owned) same(p *owned) bool {
	return o.name == p.name && o.def == p.def && o.effect == p.effect
}

// keys returns the forms of the tool's names by which it is compared with others.
func (o *owned) keys() []string {
	whole := o.name
	if o.server.opts.Name != "" {
		whole = o.server.opts.Name + "_" + o.name
	}
	return []string{safetext.Name(o.def.Name), safetext.Name(whole)}
}

// names is a set of names of tools. Names that look alike are one.
type names map[string]bool

// take adds the names of a tool. It returns false if one of them is taken.
func (n names) take(o *owned) bool {
	keys := o.keys()
	for _, key := range keys {
		if n[key] {
			return false
		}
	}
	for _, key := range keys {
		n[key] = true
	}
	return true
}

// Hook follows changes of the server's list. After the server has announced a change, the next turn of a run withdraws
// each tool of this server that is gone or has another definition. A record ("mcp.tools") in the conversation and
// [Options.Log] report it. New tools are left out: a program that wants them connects again.
//
// If the new list cannot be read, the tools stay as they are, and the list is read again after the next turn.
func (s *Server) Hook() executor.Hook {
	return executor.Hook{Next: func(ctx context.Context, turn executor.Turn) (executor.Turn, error) {
		if turn.Stop == "" {
			s.refresh(ctx)
			turn.DAG = s.follow(turn.DAG)
		}
		return turn, nil
	}}
}

// follow withdraws the tools in d that this server lists no longer.
func (s *Server) follow(d dag.DAG) dag.DAG {
	s.mu.Lock()
	tools := s.tools
	s.mu.Unlock()

	changed := record{Server: safetext.UTF8(s.opts.Name)}
	for _, def := range d.ToolDefs() {
		bound, _ := d.Tool(def.Name)
		if old, is := unwrap.As[*owned, executor.Tool](bound); is && old.server == s && !slices.Contains(tools, old) {
			changed.Withdrawn = append(changed.Withdrawn, def.Name)
		}
	}
	if len(changed.Withdrawn) == 0 {
		return d
	}

	s.opts.Log.Warn("the tools of an MCP server have changed in a run", "server", s.opts.Name, "withdrawn", changed.Withdrawn)
	return d.WithdrawTools(changed.Withdrawn...).Custom(recordName, changed)
}

// list reads the tools of the server.
func (s *Server) list(ctx context.Context, session *sdk.ClientSession) error {
	// Read changes before the list: a change announced while the list is read then leads to another listing.
	s.mu.Lock()
	changes := s.changes
	s.mu.Unlock()

	l := listing{s: s, ctx: ctx, names: names{}}
	// A server that does not announce tools may refuse to list them.
	if c := session.InitializeResult(); c != nil && c.Capabilities != nil && c.Capabilities.Tools != nil {
		if err := l.read(session); err != nil {
			return err
		}
	}
	l.admit()

	s.mu.Lock()
	defer s.mu.Unlock()
	s.tools, s.leftOut, s.listed = l.tools, l.leftOut, changes
	for _, o := range l.tools {
		s.known[o.def.Name] = o
	}
	return nil
}

// listing is one reading of the server's list.
type listing struct {
	s       *Server
	ctx     context.Context
	names   names
	tools   []*owned
	leftOut []error
}

// leave leaves out a tool or, if name is "", what follows in the list.
func (l *listing) leave(name string, err error) {
	if name == "" {
		err = fmt.Errorf("the list of tools is cut off: %w", err)
	} else {
		err = fmt.Errorf("tool %s: %w", safetext.Quote(name, 200), err)
	}
	l.leftOut = append(l.leftOut, err)
	l.s.opts.Log.WarnContext(l.ctx, "a tool of an MCP server is left out", "server", l.s.opts.Name, "error", err)
}

// read reads the pages of the list.
func (l *listing) read(session *sdk.ClientSession) error {
	const longestCursor = 4 << 10
	limits := l.s.opts.Limits
	tools, size := 0, 0
	cursors := map[[sha256.Size]byte]bool{}
	for cursor, pages := "", 1; ; pages++ {
		page, err := session.ListTools(l.ctx, &sdk.ListToolsParams{Cursor: cursor})
		if err != nil {
			return err
		}

		for _, def := range page.Tools {
			tools++
			whole, err := content.ToJSON(def)
			size += len(whole)
			if limit := errors.Join(over("Tools", tools, limits.Tools), over("List", size, limits.List)); limit != nil {
				l.leave("", limit)
				return nil
			}
			if err != nil {
				l.leave(def.Name, fmt.Errorf("%w: %w", content.ErrTool, err))
				continue
			}
			l.add(def)
		}

		cursor = page.NextCursor
		sum := sha256.Sum256([]byte(cursor))
		switch {
		case cursor == "":
			return nil
		case cursors[sum], len(cursor) > longestCursor:
			l.leave("", errors.New("the server repeats the cursor of a page, or it is too long"))
			return nil
		case pages == limits.Pages:
			l.leave("", over("Pages", pages+1, limits.Pages))
			return nil
		}
		cursors[sum] = true
	}
}

// add adds a tool of the list, if it can be used.
func (l *listing) add(def *sdk.Tool) {
	if l.s.opts.Include != nil && !l.s.opts.Include(def.Name) {
		return
	}
	o, err := l.s.tool(def)
	if err == nil && !l.names.take(o) {
		err = errToolName
	}
	if err != nil {
		l.leave(def.Name, err)
		return
	}
	l.tools = append(l.tools, o)
}

// admit leaves out new and changed tools. The first list is what the program connects for.
func (l *listing) admit() {
	s := l.s
	s.mu.Lock()
	first, known := s.known == nil, maps.Clone(s.known)
	if first {
		s.known = map[string]*owned{}
	}
	s.mu.Unlock()
	if first {
		return
	}

	var admitted []*owned
	for _, o := range l.tools {
		switch old := known[o.def.Name]; {
		case old == nil:
			l.leave(o.name, errToolNew)
		case !old.same(o):
			l.leave(o.name, errToolChanged)
		default:
			admitted = append(admitted, old) // it is the same tool: runs that have it keep it
		}
	}
	l.tools = admitted
}
