package executor_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// conform is one numbered case of the systems that Plait unites.
type conform struct {
	id      string             // "P1", "T5", "R12", "A3", "C2"; "H1" is one of the 26 that say the most
	says    string             // the behaviour, in one line
	differs string             // why Plait does otherwise on purpose, and what it does instead; "" where it does the same
	shownBy string             // the cases of other systems that show it, by id; "" where test shows all of it
	test    func(t *testing.T) // shows it; for one that differs, what Plait does instead. nil where shownBy shows all of it
}

// systems are the ids that each of them has to have.
var systems = []struct {
	prefix string
	cases  int
	list   *[]conform
}{
	{"H", 26, &highest},
	{"P", 36, &pi},
	{"T", 24, &tinyAgent},
	{"R", 41, &phi},
	{"A", 36, &agentCore},
	{"C", 6, &cortex},
}

// TestConformance shows, case by case, what Plait shares with each of the systems that it unites, and where it differs from them on
// purpose.
func TestConformance(t *testing.T) {
	for _, s := range systems {
		t.Run(s.prefix, func(t *testing.T) {
			for _, c := range *s.list {
				t.Run(c.id+" "+c.says, func(t *testing.T) {
					if c.differs != "" {
						t.Log("differs:", c.differs)
					}
					if c.shownBy != "" {
						t.Log("shown by", c.shownBy)
					}
					if c.test != nil {
						c.test(t)
					}
				})
			}
		})
	}
	t.Run("no case is missing, and none is there twice", func(t *testing.T) {
		shown := map[string]bool{} // the cases that have a test of their own
		for _, s := range systems {
			for _, c := range *s.list {
				shown[c.id] = c.test != nil
			}
		}
		for _, s := range systems {
			var have, want []string
			for _, c := range *s.list {
				have = append(have, c.id)
				require.NotEmpty(t, c.says, c.id)
				require.True(t, c.test != nil || c.shownBy != "", "%s has no test", c.id)
				for _, id := range strings.Fields(c.shownBy) {
					require.True(t, shown[id], "%s is shown by %s, which has no test", c.id, id)
				}
			}
			for i := range s.cases {
				want = append(want, fmt.Sprint(s.prefix, i+1))
			}
			slices.Sort(have)
			slices.Sort(want)
			require.Equal(t, want, have)
		}
	})
}
