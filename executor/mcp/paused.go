package mcp

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// errAnswered: the state of a paused run is unknown.
var errAnswered = errors.New("the question for approval was answered before, or is too old: call the tool again")

const (
	pausedPrefix = "mcp.paused/" // of the keys of paused runs in the store; then the time in hexadecimal, and a hash
	pausedName   = "mcp.paused"  // of the record in place of a run whose conversation has a key of its own
	pausedMax    = 1000
	pausedFor    = 24 * time.Hour
)

// pausedRun is the record of a paused run whose conversation is in the store.
type pausedRun struct {
	Conversation string `json:"conversation"`
	Head         string `json:"head"` // the digest of its head
}

// pause keeps a run that waits for approval, and returns its state: a time and a secret that nobody can guess. The store
// has a hash in its place, so that nobody who reads the store can answer.
func (s *agentServer) pause(ctx context.Context, d dag.DAG, c *store.Conversation) (state string, err error) {
	if err := s.forget(ctx); err != nil {
		return "", err
	}

	if c != nil {
		d = dag.New().Custom(pausedName, pausedRun{c.Key(), digest(d)})
	}
	state = fmt.Sprintf("%012x-%s", time.Now().UnixMilli(), rand.Text())
	kept, err := s.pauses.Conversation(ctx, s.pausedKey(state))
	if err == nil {
		err = kept.Append(ctx, d)
	}
	return state, err
}

// resume returns the paused run of a state, once, whichever instance asks.
func (s *agentServer) resume(ctx context.Context, state string) (dag.DAG, *store.Conversation, error) {
	key := s.pausedKey(state)
	kept, err := s.pauses.Head(ctx, key, store.Main)
	if errors.Is(err, store.ErrNotStored) || errors.Is(err, store.ErrName) || err == nil && tooOld(key) {
		return dag.DAG{}, nil, errAnswered
	}
	if err != nil {
		return dag.DAG{}, nil, err
	}

	// Of two instances with the same answer, one removes the head.
	switch err := kept.Remove(ctx); {
	case errors.Is(err, store.ErrMoved):
		return dag.DAG{}, nil, errAnswered
	case err != nil:
		return dag.DAG{}, nil, err
	}

	record, named := kept.DAG().Head().Payload().(node.Custom)
	if !named || record.Name != pausedName {
		return kept.DAG(), nil, nil
	}
	var run pausedRun
	if err := record.JSON.Decode(&run); err != nil {
		return dag.DAG{}, nil, err
	}
	c, err := s.open(ctx, run.Conversation)
	if err == nil && digest(c.DAG()) != run.Head {
		err = errors.New("the conversation was continued elsewhere: call the tool again")
	}
	if err != nil {
		return dag.DAG{}, nil, err
	}
	return c.DAG(), c, nil
}

// forget removes the paused runs that nobody has answered: those that are too old, and the oldest beyond the limit.
func (s *agentServer) forget(ctx context.Context) error {
	var keys []string // the oldest first
	for key, err := range s.pauses.Conversations(ctx, pausedPrefix) {
		if err != nil {
			return err
		}
		keys = append(keys, key)
	}

	for i, key := range keys {
		if !tooOld(key) && len(keys)-i < pausedMax {
			break
		}
		if err := s.pauses.Delete(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// pausedKey returns the key of a paused run in the store. The state of another tool has another key.
func (s *agentServer) pausedKey(state string) string {
	at, _, _ := strings.Cut(state, "-")
	sum := sha256.Sum256([]byte(s.Name + "\x00" + state))
	return fmt.Sprintf("%s%s-%x", pausedPrefix, at, sum)
}

// tooOld reports whether a paused run may not be answered any more.
func tooOld(key string) bool {
	at, _, _ := strings.Cut(strings.TrimPrefix(key, pausedPrefix), "-")
	milliseconds, err := strconv.ParseInt(at, 16, 64)
	return err != nil || time.Since(time.UnixMilli(milliseconds)) > pausedFor
}

// digest returns the digest of the head of a conversation.
func digest(d dag.DAG) string { return fmt.Sprintf("%x", d.Head().Digest()) }
