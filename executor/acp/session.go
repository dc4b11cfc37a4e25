package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/google/uuid"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// session is a conversation that the client has opened.
type session struct {
	*server
	id    string
	dir   string
	tools *toolbox // of the client's MCP servers

	mu           sync.Mutex // guards the fields below
	conversation *store.Conversation
	chosen       kept
	always       map[string]bool       // the user's decision about all calls of a tool
	keeps        map[node.CallKey]bool // the calls whose shown content stays when the result comes
	turn         *turn                 // the prompt under way; nil if there is none
	closed       bool
}

// metaKey is the key for kept in the metadata of a conversation.
const metaKey = "acp.session"

// kept is what a session keeps in its conversation, beside the messages.
type kept struct {
	Dir   string `json:"cwd,omitempty"`
	Title string `json:"title,omitempty"`
	Model string `json:"model,omitempty"`
	// Mode is not kept: it may allow calls, and a conversation may come from somebody else.
	Mode string `json:"-"`
}

// mark separates the key of a conversation and the name of a head in the ID of a session.
const mark = "#"

// idOf returns the ID of the session at a head.
func (s *server) idOf(key, head string) string {
	id := strings.TrimPrefix(key, s.Prefix)
	if head == store.Main && !strings.Contains(id, mark) {
		return id
	}
	return id + mark + head
}

// placeOf returns the conversation and the head of a session.
func (s *server) placeOf(id string) (key, head string) {
	if at := strings.LastIndex(id, mark); at >= 0 {
		return s.Prefix + id[:at], id[at+1:]
	}
	return s.Prefix + id, store.Main
}

// place is where a client wants a session to work.
type place struct {
	dir     string
	servers []sdk.McpServer
}

// newSession begins a session. It is stored with its first prompt.
func (s *server) newSession(ctx context.Context, r sdk.NewSessionRequest) (sdk.NewSessionResponse, error) {
	key := s.Prefix + uuid.Must(uuid.NewV7()).String()
	c, err := s.Store.Conversation(ctx, key)
	if err != nil {
		return sdk.NewSessionResponse{}, err
	}
	open, err := s.open(ctx, c, place{r.Cwd, r.McpServers})
	if err != nil {
		return sdk.NewSessionResponse{}, err
	}
	modes, options := open.choices()
	return sdk.NewSessionResponse{
		SessionId: sdk.SessionId(open.id), Modes: modes, ConfigOptions: options,
	}, nil
}

// load opens a stored session, and sends its messages.
func (s *server) load(ctx context.Context, r sdk.LoadSessionRequest) (sdk.LoadSessionResponse, error) {
	open, err := s.reopen(ctx, r.SessionId, place{r.Cwd, r.McpServers})
	if err != nil {
		return sdk.LoadSessionResponse{}, err
	}
	if err := open.replay(open.conversation.DAG()); err != nil {
		return sdk.LoadSessionResponse{}, err
	}
	modes, options := open.choices()
	return sdk.LoadSessionResponse{Modes: modes, ConfigOptions: options}, nil
}

// resume opens a stored session without sending its messages.
func (s *server) resume(ctx context.Context, r sdk.ResumeSessionRequest) (sdk.ResumeSessionResponse, error) {
	open, err := s.reopen(ctx, r.SessionId, place{r.Cwd, r.McpServers})
	if err != nil {
		return sdk.ResumeSessionResponse{}, err
	}
	modes, options := open.choices()
	return sdk.ResumeSessionResponse{Modes: modes, ConfigOptions: options}, nil
}

// forkRequest is the request to fork a session, by the draft of the protocol.
type forkRequest struct {
	SessionID  sdk.SessionId   `json:"sessionId"`
	Cwd        string          `json:"cwd"`
	McpServers []sdk.McpServer `json:"mcpServers"`
}

// fork opens a new head of a stored conversation. No node is copied.
func (s *server) fork(ctx context.Context, r forkRequest) (sdk.NewSessionResponse, error) {
	key, head := s.placeOf(string(r.SessionID))
	c, err := s.Store.Head(ctx, key, head)
	if err != nil {
		return sdk.NewSessionResponse{}, err
	}
	fork, err := c.Fork(ctx, uuid.Must(uuid.NewV7()).String())
	if err != nil {
		return sdk.NewSessionResponse{}, err
	}
	open, err := s.open(ctx, fork, place{r.Cwd, r.McpServers})
	if err != nil {
		return sdk.NewSessionResponse{}, errors.Join(err, fork.Remove(context.WithoutCancel(ctx)))
	}
	modes, options := open.choices()
	return sdk.NewSessionResponse{
		SessionId: sdk.SessionId(open.id), Modes: modes, ConfigOptions: options,
	}, nil
}

// reopen opens a stored session.
func (s *server) reopen(ctx context.Context, id sdk.SessionId, at place) (*session, error) {
	key, head := s.placeOf(string(id))
	c, err := s.Store.Head(ctx, key, head)
	if err != nil {
		return nil, err
	}
	return s.open(ctx, c, at)
}

// open opens a session, in place of one that is open with the same ID.
func (s *server) open(ctx context.Context, c *store.Conversation, at place) (*session, error) {
	if !filepath.IsAbs(at.dir) {
		return nil, invalid("the working directory is no absolute path")
	}
	open := &session{
		server: s, id: s.idOf(c.Key(), c.Name()), dir: at.dir, conversation: c, always: map[string]bool{},
		keeps: map[node.CallKey]bool{},
	}
	open.read(c.DAG())

	// Look for room before programs are started, and again when they run.
	err := s.enter(open, false)
	if err == nil {
		open.tools, err = s.connect(ctx, at.servers)
	}
	if err == nil {
		err = s.enter(open, true)
	}
	if err != nil {
		open.end()
		return nil, err
	}
	return open, nil
}

// enter makes a session one of the open ones, or only reports whether it could.
func (s *server) enter(open *session, really bool) error {
	s.mu.Lock()
	before := s.sessions[open.id]
	err := error(nil)
	switch {
	case before != nil && before.busy():
		err = errBusy
	case before == nil && len(s.sessions) >= s.Sessions:
		err = invalid("%d sessions are open: close one", len(s.sessions))
	case really:
		s.sessions[open.id] = open
	}
	s.mu.Unlock()

	if err == nil && really && before != nil {
		before.end()
	}
	return err
}

// read reads what the session has kept in the conversation.
func (s *session) read(d dag.DAG) {
	s.chosen = kept{}
	if value := d.Metadata().Get(metaKey); value != "" {
		_ = value.Decode(&s.chosen) // a value of another program is ignored
	}
	s.chosen.Dir = s.dir

	// A choice that the program no longer has is not in effect.
	for _, c := range []struct {
		id  *string
		all []Choice
	}{{&s.chosen.Mode, s.Modes}, {&s.chosen.Model, s.Models}} {
		if _, found := choice(c.all, *c.id); !found && len(c.all) > 0 {
			*c.id = c.all[0].ID
		}
	}
}

// end cancels the prompt of a session, waits for it, and ends the session's MCP servers.
func (s *session) end() {
	s.mu.Lock()
	s.closed = true
	running := s.turn
	s.mu.Unlock()
	if running != nil {
		running.cancel(errCancelled)
		<-running.done
	}
	s.tools.close()
}

// leave closes a session if it is open.
func (s *server) leave(id string) (found bool) {
	s.mu.Lock()
	open := s.sessions[id]
	delete(s.sessions, id)
	s.mu.Unlock()
	if open != nil {
		open.end()
	}
	return open != nil
}

func (s *server) closeSession(_ context.Context, r sdk.CloseSessionRequest) (sdk.CloseSessionResponse, error) {
	if !s.leave(string(r.SessionId)) {
		return sdk.CloseSessionResponse{}, errNoSession
	}
	return sdk.CloseSessionResponse{}, nil
}

// methodDelete is the method to delete a session. The SDK does not have it.
const methodDelete = "session/delete"

type deleteRequest struct {
	SessionID string `json:"sessionId"`
}

// delete closes and removes a session. Its forks stay. A session that does not exist is no error.
func (s *server) delete(ctx context.Context, r deleteRequest) (struct{}, error) {
	s.leave(r.SessionID)
	key, head := s.placeOf(r.SessionID)
	c, err := s.Store.Head(ctx, key, head)
	if errors.Is(err, store.ErrNotStored) && !errors.Is(err, store.ErrRecord) {
		return struct{}{}, nil
	}
	if err == nil {
		err = c.Remove(ctx)
	}
	if err == nil {
		_, err = s.Store.Prune(ctx, key, false)
	}
	return struct{}{}, err
}

// pageSize is how many conversations a page of the list has.
const pageSize = 50

// list returns a page of the stored sessions, in the order of their IDs. The cursor is the last key of the page before.
func (s *server) list(ctx context.Context, r sdk.ListSessionsRequest) (sdk.ListSessionsResponse, error) {
	response := sdk.ListSessionsResponse{Sessions: []sdk.SessionInfo{}}
	last, found := "", 0
	for key, err := range s.Store.Conversations(ctx, s.Prefix) {
		switch {
		case err != nil:
			return sdk.ListSessionsResponse{}, err
		case r.Cursor != nil && key <= s.Prefix+*r.Cursor:
			continue
		case found == pageSize:
			response.NextCursor = sdk.Ptr(strings.TrimPrefix(last, s.Prefix))
			return response, nil
		}
		last, found = key, found+1

		// Each head is a session of its own.
		for head, err := range s.Store.Heads(ctx, key, "") {
			if err != nil {
				return sdk.ListSessionsResponse{}, err
			}
			info := s.infoOf(key, head)
			if r.Cwd == nil || *r.Cwd == info.Cwd {
				response.Sessions = append(response.Sessions, info)
			}
		}
	}
	return response, nil
}

// infoOf describes the session at a head, from the head alone: no node is read.
func (s *server) infoOf(key string, head store.Head) sdk.SessionInfo {
	var header struct {
		Metadata map[string]json.RawMessage `json:"metadata"`
	}
	var k kept
	_ = json.Unmarshal(head.Header, &header) // without a title, the session is still one
	_ = json.Unmarshal(header.Metadata[metaKey], &k)

	// A session of another program has no working directory: the client names one when it loads the session.
	info := sdk.SessionInfo{SessionId: sdk.SessionId(s.idOf(key, head.Name)), Cwd: cmp.Or(k.Dir, string(filepath.Separator))}
	if k.Title != "" {
		info.Title = &k.Title
	}
	if id := lastID(head.Nodes); id != (uuid.UUID{}) {
		seconds, nanoseconds := id.Time().UnixTime()
		info.UpdatedAt = sdk.Ptr(time.Unix(seconds, nanoseconds).UTC().Format(time.RFC3339))
	}
	return info
}

// lastID returns the last of the IDs of version 7, which have a time.
func lastID(ids []uuid.UUID) (last uuid.UUID) {
	for _, id := range ids {
		if id.Version() == 7 && slices.Compare(id[:], last[:]) > 0 {
			last = id
		}
	}
	return last
}

// titleOf returns the title of a session: the beginning of its first message.
func titleOf(blocks content.Blocks) string {
	line, _, _ := strings.Cut(strings.TrimSpace(blocks.Text()), "\n")
	return safetext.UTF8(safetext.Cut(line, 80))
}

// choices returns the options of a session: its mode and its model. The modes are there in their former form, too, which
// clients know.
func (s *session) choices() (*sdk.SessionModeState, []sdk.SessionConfigOption) {
	s.mu.Lock()
	chosen := s.chosen
	s.mu.Unlock()

	var modes *sdk.SessionModeState
	var options []sdk.SessionConfigOption
	if len(s.Modes) > 0 {
		modes = &sdk.SessionModeState{CurrentModeId: sdk.SessionModeId(chosen.Mode)}
		options = append(options, optionOf(optionMode, "Mode", s.Modes, chosen.Mode))
	}
	for _, c := range s.Modes {
		modes.AvailableModes = append(modes.AvailableModes, sdk.SessionMode{
			Id: sdk.SessionModeId(c.ID), Name: cmp.Or(c.Name, c.ID), Description: given(c.Description),
		})
	}

	if len(s.Models) > 0 {
		options = append(options, optionOf(optionModel, "Model", s.Models, chosen.Model))
	}
	return modes, options
}

// The options of a session. Their categories have the same names.
const (
	optionMode  = "mode"
	optionModel = "model"
)

func optionOf(id, name string, all []Choice, current string) sdk.SessionConfigOption {
	list := sdk.SessionConfigSelectOptionsUngrouped{}
	for _, c := range all {
		list = append(list, sdk.SessionConfigSelectOption{
			Value: sdk.SessionConfigValueId(c.ID), Name: cmp.Or(c.Name, c.ID), Description: given(c.Description),
		})
	}
	option := sdk.NewSessionConfigOptionSelect(sdk.SessionConfigValueId(current), sdk.SessionConfigSelectOptions{Ungrouped: &list})
	option.Select.Id, option.Select.Name = sdk.SessionConfigId(id), name
	option.Select.Category = sdk.Ptr(sdk.SessionConfigOptionCategory(id))
	return option
}

// given returns a pointer to a text, or nil for an empty one.
func given(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func (s *server) setMode(_ context.Context, r sdk.SetSessionModeRequest) (sdk.SetSessionModeResponse, error) {
	_, err := s.choose(r.SessionId, optionMode, string(r.ModeId))
	return sdk.SetSessionModeResponse{}, err
}

func (s *server) setOption(
	_ context.Context, r sdk.SetSessionConfigOptionRequest,
) (response sdk.SetSessionConfigOptionResponse, err error) {
	if r.ValueId == nil {
		return response, invalid("there is no such option")
	}
	response.ConfigOptions, err = s.choose(r.ValueId.SessionId, string(r.ValueId.ConfigId), string(r.ValueId.Value))
	return response, err
}

// choose sets the mode or the model of a session, from the next prompt on, which stores the model.
func (s *server) choose(id sdk.SessionId, option, value string) ([]sdk.SessionConfigOption, error) {
	open, err := s.session(id)
	if err != nil {
		return nil, err
	}
	all := map[string][]Choice{optionMode: s.Modes, optionModel: s.Models}[option]
	if _, found := choice(all, value); !found {
		return nil, invalid("there is no such %s", safetext.Quote(option, 40))
	}

	open.mu.Lock()
	if option == optionMode {
		open.chosen.Mode = value
	} else {
		open.chosen.Model = value
	}
	open.mu.Unlock()

	// The client may show both forms of a mode, and has set one.
	_, options := open.choices()
	if option == optionMode {
		err = open.update(sdk.SessionUpdate{CurrentModeUpdate: &sdk.SessionCurrentModeUpdate{CurrentModeId: sdk.SessionModeId(value)}})
	}
	return options, errors.Join(err, open.update(sdk.SessionUpdate{
		ConfigOptionUpdate: &sdk.SessionConfigOptionUpdate{ConfigOptions: options},
	}))
}

// update sends an update of the session.
func (s *session) update(u sdk.SessionUpdate) error {
	return s.conn.notify(sdk.ClientMethodSessionUpdate, sdk.SessionNotification{SessionId: sdk.SessionId(s.id), Update: u})
}
