package dag_test

import (
	"fmt"

	"github.com/plait-dev/plait/dag"
)

// A ref is a name for the heads as they are: a branch to come back to, or a tag for a state that worked.
func ExampleDAG_WithRef() {
	d := dag.New().User("Name a city.").WithRef("start")
	d = d.Assistant("Tokyo.").WithRef("tokyo")
	d = d.AtRef("start").Assistant("Lima.").WithRef("lima")
	for _, r := range d.Refs() {
		fmt.Println(r.Name, d.AtRef(r.Name).Len())
	}
	fmt.Println(d.WithoutRef("tokyo").AtRef("tokyo").Err())
	// Output:
	// lima 2
	// start 1
	// tokyo 2
	// dag: AtRef: no such ref: "tokyo"
}
