package dag_test

import (
	"errors"
	"fmt"
	"maps"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

// Refs, edits, merges and differences of the random model in model_test.go.

// travel does one random operation on v that goes back, aside or together.
func (m *model) travel(v, other version) version {
	switch order := m.order(v.heads); m.rnd.IntN(6) {
	case 0:
		name := fmt.Sprint("ref", m.rnd.IntN(4))
		now := m.after(v.d.WithRef(name), v.heads)
		now.refs = maps.Clone(v.refs)
		if now.refs == nil {
			now.refs = map[string][]int{}
		}
		now.refs[name] = v.heads
		return now
	case 1:
		name := fmt.Sprint("ref", m.rnd.IntN(4))
		now := m.after(v.d.WithoutRef(name), v.heads)
		now.refs = maps.Clone(v.refs)
		delete(now.refs, name)
		return now
	case 2:
		name := fmt.Sprint("ref", m.rnd.IntN(4))
		heads, has := v.refs[name]
		if !has {
			require.ErrorIs(m.t, v.d.AtRef(name).Err(), dag.ErrNoRef)
			return v
		}
		now := m.after(v.d.AtName(name), heads)
		now.refs = v.refs
		return now
	case 3:
		return m.merge(v, other)
	default:
		complete(m.t, v.d, other.d)
		if len(order) > 0 {
			n := m.real[order[m.rnd.IntN(len(order))]]
			found, err := v.d.Find(n.ID().String())
			require.NoError(m.t, err)
			require.Same(m.t, n, found)
		}
		return v
	}
}

// merge merges two versions. The model takes what came out as it is, and checks what a merge promises.
func (m *model) merge(v, other version) version {
	d := dag.Merge(dag.Branch{DAG: v.d}, dag.Branch{DAG: other.d})
	if err := d.Err(); err != nil {
		require.True(m.t, errors.Is(err, dag.ErrMerge), "%v", err)
		return v
	}
	require.NotNil(m.t, d.Head())
	require.Empty(m.t, d.OpenCalls())
	for _, n := range append(v.d.Nodes(), other.d.Nodes()...) {
		found, err := d.Find(n.ID().String())
		require.NoError(m.t, err, "a merge loses nothing")
		require.Same(m.t, n, found)
	}
	m.adopt(d)
	next := m.after(d, []int{m.place[d.Head().ID()]})
	next.refs = m.joinedRefs(v, other)
	return next
}

// joinedRefs is the refs of v, and those of other whose names are free.
func (m *model) joinedRefs(v, other version) map[string][]int {
	all := maps.Clone(other.refs)
	if all == nil {
		all = map[string][]int{}
	}
	maps.Copy(all, v.refs)
	return all
}

// adopt takes the nodes of d that the model does not have into it, as they are.
func (m *model) adopt(d dag.DAG) {
	for _, n := range d.Nodes() {
		if _, known := m.place[n.ID()]; known {
			continue
		}
		made := modelNode{kind: n.Kind()}
		for _, p := range n.Parents() {
			made.parents = append(made.parents, m.place[p.ID()])
		}
		switch p := n.Payload().(type) {
		case node.Message:
			made.role, made.results = p.Role, len(p.Blocks.ToolResults()) > 0
			made.text = spell([]content.Message{{Role: p.Role, Blocks: p.Blocks}})[0]
			made.begins = !made.results
		case node.ToolExecution:
			made.index, made.text = p.Index, "user:!"+p.CallID+"="+p.Result.Text()
		}
		at := m.add(made)
		m.real[at], m.place[n.ID()] = n, at
	}
}

// checkRefs compares the refs of a version with what the model says.
func (m *model) checkRefs(v version) {
	require.Len(m.t, v.d.Refs(), len(v.refs))
	for name, heads := range v.refs {
		var places []int
		for _, n := range v.d.AtRef(name).Nodes() {
			places = append(places, m.place[n.ID()])
		}
		require.Equal(m.t, m.order(heads), places, name)
	}
}
