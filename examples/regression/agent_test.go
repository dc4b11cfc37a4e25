package regression

import (
	"flag"
	"testing"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/replay"
)

const session = "testdata/session.json"

var record = flag.Bool("record", false, "record the session again")

func TestToolsReturnWhatTheyReturned(t *testing.T) {
	if *record {
		// Use a real model here.
		model := apitest.NewScript(
			apitest.Call(apitest.Use("quote", Order{"bolts", 40}), apitest.Use("quote", Order{"nuts", 38}), apitest.Use("quote", Order{"glue", 1})),
			apitest.Say("The bolts are 4.80, the nuts 3.04. We have no glue."),
		)
		d, err := executor.Run(t.Context(), model, dag.New().Tools(Tools()...).User("40 bolts, 38 nuts and glue, please."))
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Save(session); err != nil {
			t.Fatal(err)
		}
	}

	for _, difference := range changed(t) {
		t.Error(difference)
	}
}

// A test that cannot fail shows nothing: this one changes a price.
func TestAChangedPriceIsNoticed(t *testing.T) {
	before := Price["nuts"]
	defer func() { Price["nuts"] = before }()
	Price["nuts"] = 9

	differences := changed(t)
	if len(differences) != 1 || differences[0] != `quote{"item":"nuts","count":38} → 3.42, recorded → 3.04` {
		t.Errorf("found %q", differences)
	}
}

// changed executes the recorded calls with today's tools, and returns those whose results differ.
func changed(t *testing.T) (differences []string) {
	t.Helper()
	recorded, err := dag.Load(session)
	if err != nil {
		t.Fatal(err)
	}
	calls, err := replay.Tools(t.Context(), executor.Agent{}, recorded.Tools(Tools()...), false, nil)
	if err != nil {
		t.Fatal(err)
	}

	for _, c := range calls {
		if !c.Same {
			differences = append(differences, c.String())
		}
	}
	return differences
}
