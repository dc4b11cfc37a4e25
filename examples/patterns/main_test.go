package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

// printed is what the programs print.
var printed = map[string]string{
	"debate": `○ user      tea: Tea keeps you calm.
○ user      coffee: Coffee keeps you awake.
○ user      tea: Calm work has fewer faults.
○ user      coffee: Asleep, nobody works.
▣ sub-graph tea → Calm work has fewer faults.
│ ┊ ○ user      Tea or coffee at work?
│ ┊ ◆ system    (agent) Argue for tea.
│ ┊ ● assistant Tea keeps you calm.
│ ┊ ■ stop      end_turn · 1 turn
│ ┊ ○ user      Coffee keeps you awake.
│ ┊ ● assistant Calm work has fewer faults.
│ ┊ ■ stop      end_turn · 1 turn
▣ sub-graph coffee → Asleep, nobody works.
│ ┊ ○ user      Tea keeps you calm.
│ ┊ ◆ system    (agent) Argue for coffee.
│ ┊ ● assistant Coffee keeps you awake.
│ ┊ ■ stop      end_turn · 1 turn
│ ┊ ○ user      Calm work has fewer faults.
│ ┊ ● assistant Asleep, nobody works.
│ ┊ ■ stop      end_turn · 1 turn
◆ system    (agent) Who is right?
● assistant Coffee, by a cup.
■ stop      end_turn · 1 turn`,
	"handoff": `○ user      A-7 never came.
◆ system    (agent) Find out what the customer wants.
◆ tools     hand_off_to_refunds
● assistant → hand_off_to_refunds
▪ hand_off_to_refunds() → refunds has the conversation now.
■ stop      terminated · 1 turn · 1 tool call
◆ tools     withdrawn: hand_off_to_refunds
◆ system    (agent) Refund what was not delivered.
◆ tools     refund
▸ run       by refunds
● assistant → refund
▪ refund(id: "A-7") → A-7 refunded
● assistant A-7 is refunded.
■ stop      end_turn · 2 turns · 1 tool call
○ user      Thanks!
● assistant You are welcome.
■ stop      end_turn · 1 turn`,
	"memory": `○ user      I eat no meat.
◆ system    (agent) Remember what will matter later. Known of this user:
◆ tools     remember
● assistant → remember
▪ remember(text: "Ada eats no meat.") → noted
● assistant I will remember that.
■ stop      end_turn · 2 turns · 1 tool call

○ user      Where shall I eat?
◆ system    (agent) Remember what will matter later. Known of this user: Ada eats no meat.
◆ tools     remember
● assistant The place with the mushrooms.
■ stop      end_turn · 1 turn`,
	"optimizer": `○ user      Write a line about our bolts.
● assistant Our bolts are good.
■ stop      end_turn · 1 turn
○ user      Give a number.
● assistant Our bolts hold 900 kg.
■ stop      end_turn · 1 turn`,
	"router": `law: Two weeks, if nothing else was agreed.`,
	"workers": `○ user      How do I get to Paris for less?
○ user      Trains: 49 €.
○ user      Planes: 120 €.
● assistant Take the train.
■ stop      end_turn · 1 turn`,
}

func TestPatternsPrintWhatTheRecipesShow(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(patterns)) {
		synctest.Test(t, func(t *testing.T) { // time stands still, so that no duration is printed
			var out strings.Builder
			if err := patterns[name](t.Context(), &out); err != nil {
				t.Fatal(name, err)
			}
			if got := strings.TrimSpace(out.String()); got != printed[name] {
				t.Errorf("%s printed\n%s", name, got)
			}
		})
	}
}

// A process that dies behind a hand-off leaves a conversation that the next process continues with the right agent,
// which is sent its own prompt and tools alone.
func TestConversationRemembersWhoHasIt(t *testing.T) {
	receiver := apitest.NewScript(apitest.Say("It is here now."))
	k := desk{first: "a", agents: map[string]executor.Agent{
		"a": {System: "You are a.", Tools: []dag.Tool{handOff("b", ""), handOff("c", "")},
			Provider: apitest.NewScript(apitest.Call(apitest.Use(handOffTo+"b", nil)))},
		"b": {System: "You are b.", Tools: []dag.Tool{handOff("a", "")}, Provider: receiver},
	}}

	// The process ends behind the hand-off.
	path := t.TempDir() + "/talk.json"
	first := k.agents["a"]
	first.Name, first.Hooks = "a", []executor.Hook{handedOff}
	d, err := first.Run(t.Context(), dag.New().User("Hello"))
	if err == nil {
		err = d.Save(path)
	}
	if err != nil {
		t.Fatal(err)
	}

	d, err = dag.Load(path)
	if err == nil && k.owner(d) != "b" {
		t.Errorf("%s has it", k.owner(d))
	}
	if err == nil {
		d, err = k.run(t.Context(), d)
	}
	if err != nil {
		t.Fatal(err)
	}

	sent := receiver.Requests()[0]
	if len(sent.Tools) != 1 || sent.Tools[0].Name != handOffTo+"a" || strings.Join(sent.System, "") != "You are b." {
		t.Errorf("b was sent %v %v", sent.Tools, sent.System)
	}
	if run, _ := d.LastRun(); run.Start.Agent != "b" || k.owner(d) != "b" || d.Text() != "It is here now." {
		t.Errorf("the last run is %s's: %s", run.Start.Agent, d.Text())
	}
}

// The receiver pauses by a hook of its own, and another process resumes it.
func TestReceiverPausesAndIsResumed(t *testing.T) {
	desks := func(receiver *apitest.Script) desk {
		pay := executor.Func("pay", "Pays.", func(context.Context, struct{}) (string, error) { return "paid", nil })
		return desk{first: "a", agents: map[string]executor.Agent{
			"a": {Tools: []dag.Tool{handOff("b", "")}, Provider: apitest.NewScript(apitest.Call(apitest.Use(handOffTo+"b", nil)))},
			"b": {Tools: []dag.Tool{pay}, Hooks: []executor.Hook{executor.RequireApproval("pay")}, Provider: receiver},
		}}
	}
	path := t.TempDir() + "/talk.json"
	d, err := desks(apitest.NewScript(apitest.Call(apitest.Use("pay", nil)))).run(t.Context(), dag.New().User("Pay me."))
	if !errors.Is(err, executor.ErrPaused) {
		t.Fatal(err)
	}
	if err := d.Save(path); err != nil {
		t.Fatal(err)
	}

	d, err = dag.Load(path)
	if err == nil {
		d, err = desks(apitest.NewScript(apitest.Say("Done."))).run(t.Context(), d, executor.Approved(d.Pending()[0]))
	}
	if err != nil || d.Text() != "Done." || len(d.Validate()) > 0 {
		t.Error(err, d)
	}
}

// A hand-off to nobody is a failed call, and a hand-off in a circle ends.
func TestHandOffsEnd(t *testing.T) {
	forth := executor.Agent{Tools: []dag.Tool{handOff("b", "")}, Provider: apitest.NewScript(apitest.Call(apitest.Use(handOffTo+"b", nil)).Always())}
	back := executor.Agent{Tools: []dag.Tool{handOff("a", "")}, Provider: apitest.NewScript(apitest.Call(apitest.Use(handOffTo+"a", nil)).Always())}
	k := desk{first: "a", agents: map[string]executor.Agent{"a": forth, "b": back}}
	if d, err := k.run(t.Context(), dag.New().User("Hello")); err == nil || len(d.Validate()) > 0 {
		t.Error(err, d.Validate())
	}

	k.agents["a"] = executor.Agent{Provider: apitest.NewScript(apitest.Call(apitest.Use(handOffTo+"x", nil)), apitest.Say("I keep it."))}
	d, err := k.run(t.Context(), dag.New().User("Hello"))
	if err != nil || k.owner(d) != "a" {
		t.Error(err, k.owner(d))
	}
}
