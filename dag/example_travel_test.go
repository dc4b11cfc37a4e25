package dag_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
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

// What a person types is a ref, or as much of an id or a digest as tells it apart.
func ExampleDAG_AtName() {
	d := dag.New().User("Name a city.").Assistant("Tokyo.").WithRef("tokyo").User("Another one.").Assistant("Lima.")
	digest := d.Nodes()[0].Digest().String()
	fmt.Println(d.AtName("tokyo").Text())
	fmt.Println(d.AtName(digest[:15]).Len(), d.AtName(digest[len("sha256:"):15]).Len())
	fmt.Println(d.AtName("cafe").Err())
	// Output:
	// Tokyo.
	// 1 1
	// dag: AtName: no such ref; "cafe": the node is not in this conversation
}

func ExampleDAG_Find() {
	d := dag.New().WithSource(node.Counting(time.Unix(0, 0))).User("Name a city.").Assistant("Tokyo.")
	n, err := d.Find("00000002")
	fmt.Println(n, err)
	_, err = d.Find("00000000-0000-7000")
	fmt.Println(errors.Is(err, dag.ErrAmbiguous))
	fmt.Println(err)
	// Output:
	// message 00000002 <nil>
	// true
	// "00000000-0000-7000": several nodes have that name: message 00000000-0000-7000-8000-000000000001 (sha256:2a573a020390), message 00000000-0000-7000-8000-000000000002 (sha256:25b821c4b154)
}
