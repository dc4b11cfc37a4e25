package schema

import "maps"

// marks are the members and elements of one value that schemas have evaluated, for unevaluatedProperties and
// unevaluatedItems. They are kept only for a schema with one of these keywords. nil marks ignore what is added.
type marks struct {
	members    map[string]bool
	allMembers bool
	items      int          // the first items elements are evaluated
	contained  map[int]bool // further elements
	allItems   bool
}

func (m *marks) member(name string) {
	if m == nil {
		return
	}
	if m.members == nil {
		m.members = map[string]bool{}
	}
	m.members[name] = true
}

func (m *marks) contains(i int) {
	if m == nil {
		return
	}
	if m.contained == nil {
		m.contained = map[int]bool{}
	}
	m.contained[i] = true
}

func (m *marks) evaluatedItems(first int, all bool) {
	if m != nil {
		m.items, m.allItems = max(m.items, first), m.allItems || all
	}
}

// add adds the marks of a schema that the value fits. It returns true.
func (c *checker) add(m, more *marks) bool {
	if m == nil || more == nil {
		return true
	}
	c.spend(int64(len(more.members) + len(more.contained)))
	m.allMembers = m.allMembers || more.allMembers
	m.evaluatedItems(more.items, more.allItems)
	if m.members == nil {
		m.members = maps.Clone(more.members)
	} else {
		maps.Copy(m.members, more.members)
	}
	if m.contained == nil {
		m.contained = maps.Clone(more.contained)
	} else {
		maps.Copy(m.contained, more.contained)
	}
	return true
}
