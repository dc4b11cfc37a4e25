package executor

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/node"
)

// Limits end a run. Each has a stop reason of its own, and every call has its result when a run stops.
//
// Sub-agents and other runs inside tools count too, except in CallsPerTurn and Repeats. If a run inside a tool uses up
// a limit of a run around it, it stops with the stop reason of that limit. Its call gets its result, and the run around
// it stops after the results of the message. Pauses, at any depth, change nothing in this.
type Limits struct {
	// Turns is the number of requests. The calls of the last response are executed, and then the run stops with
	// content.StopMaxTurns. Negative is no limit. Defaults to 50, not counting runs inside tools.
	//
	// A run without progress stops earlier, whatever the limit:
	//
	//   - after 2 responses in a row whose calls were cut off at the limit on output tokens, with content.StopMaxTokens
	//   - after 2 empty responses in a row with content.StopPause, with content.StopLoop
	//   - after 10 responses in a row whose calls were all refused (unknown tools, wrong arguments, calls that the
	//     options forbid), with content.StopLoop
	Turns int
	// Calls is the number of tool calls, failed, denied and unknown ones included. Calls beyond it are not executed,
	// and the run stops with content.StopCallLimit. Calls of several runs inside tools that run at the same time count
	// in the order in which their messages arrive. Defaults to no limit.
	Calls int
	// CallsPerTurn is the number of tool calls executed for one message. Calls beyond it get an error result, and the
	// run continues. Defaults to no limit.
	CallsPerTurn int
	// Tokens is the number of tokens, by Usage.Total. Once it is reached, no request is sent and no call is executed,
	// and the run stops with content.StopTokenLimit. Defaults to no limit.
	Tokens int64
	// Cost is how much the run may cost. It needs [Agent.Prices]. Once it is reached, no request is sent and no call is
	// executed, and the run stops with content.StopCostLimit. A model without a price stops the run too, because the
	// cost is then unknown. Tokens in a tool's own Result.Usage do not count, because they name no model. A negative or
	// infinite Cost, or NaN, refuses the run. Defaults to no limit.
	Cost float64
	// Time is how long the run may take, without its pauses. Then the request and the tools are cancelled, and the run
	// stops with content.StopTimeLimit. Defaults to no limit.
	Time time.Duration
	// Repeats is how often in a row a model may make the same call with the same arguments, in one response or in
	// several. The order of members in the arguments does not matter. At this count, the model is warned after the
	// results. At twice the count, calls are refused and the run stops with content.StopLoop. A message from a queue
	// resets the count. Defaults to no limit.
	Repeats int
	// Depth is how deep runs inside tools may nest below this one: 1 is a sub-agent without sub-agents of its own.
	// Negative is none at all. A run that would nest deeper is refused. Defaults to 8.
	Depth int
}

// checkMoney returns an error if the limit on cost or a price is not an amount of money.
func (a Agent) checkMoney() error {
	if !isAmount(a.Limits.Cost) {
		return fmt.Errorf("executor: Limits.Cost: %v is negative or not finite", a.Limits.Cost)
	}

	if err := a.Prices.Check(); err != nil {
		return fmt.Errorf("executor: Agent.Prices: %w", err)
	}
	return nil
}

// isAmount reports whether f is finite and not negative.
func isAmount(f float64) bool { return f >= 0 && !math.IsInf(f, 1) }

// Limits on responses in a row that bring a run no further. [Limits.Turns] documents them.
const (
	maxCut     = 2
	maxEmpty   = 2
	maxRefused = 10
)

// stalls counts the responses in a row that bring a run no further.
type stalls struct {
	cut     int // their calls were cut off
	empty   int // the provider's own tools were still running, and nothing arrived
	refused int // all of their calls were refused
}

// inARow counts what happens in a row: *n is the number of times until now.
func inARow(n *int, again bool) int {
	if *n++; !again {
		*n = 0
	}
	return *n
}

// meter counts the tokens, the cost, the turns and the calls of a run and of the runs inside its tools. They count in
// the meters of the runs around it as well.
type meter struct {
	limits  Limits // as the program set them, without defaults: runs inside tools do not count in the default of Turns
	limited bool   // one of Tokens, Cost, Turns and Calls is set, here or around
	prices  api.Prices
	around  *meter    // of the run around; nil for the outermost one
	call    *toolCall // of the run around, with this run inside; nil for the outermost one

	mu       sync.Mutex // guards the fields below
	own      content.Usage
	tools    content.Usage // used inside tools
	cost     float64       // finite and not negative
	unpriced string        // a used model without a price; "" if all have one
	// partial reports that cost is an estimate, or lacks something other than an unpriced model: usage reported by
	// tools, unknown cost from before a pause, incomplete usage.
	partial bool
	// Once a call was refused for the limit, calls is greater than the limit.
	turns, calls tally
}

// tally is a number, and the part of it inside tools.
type tally struct{ all, inner int }

// spender is who used tokens.
type spender int

const (
	ownRequest   spender = iota // a request of the run
	innerRequest                // a request of a run inside its tools
	ownTool                     // a tool by itself. It names no model, so the known cost becomes partial.
)

// spend counts tokens, in this meter and those around it.
func (m *meter) spend(by spender, model string, u content.Usage) {
	if u == (content.Usage{}) {
		return
	}
	if m.around != nil {
		m.call.addUsage(u)
		m.around.spend(max(by, innerRequest), model, u)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if by == ownRequest {
		m.own = m.own.Plus(u)
	} else {
		m.tools = m.tools.Plus(u)
	}
	m.partial = m.partial || u.Incomplete || by == ownTool

	// Without prices, only a limit on cost asks for the price of a model.
	if by == ownTool || m.prices == nil && m.limits.Cost <= 0 {
		return
	}

	price, known := m.prices.Of(model)
	if !known {
		m.unpriced = model
		return
	}

	// All prices of a free model are 0. A price for one direction only is incomplete.
	if price != (api.Price{}) && (u.Input > 0 && price.Input == 0 || u.Output > 0 && price.Output == 0) {
		m.unpriced = model
	}
	cost, whole := price.Cost(u)
	m.partial = m.partial || !whole
	m.cost = min(max(m.cost+cost, 0), math.MaxFloat64) // a server that miscounts reports negative tokens
}

// reached returns the stop reason and detail for a reached limit on tokens or cost, of this run or one around it. The
// stop reason is "" if there is none.
func (m *meter) reached() (stop content.Stop, detail string) {
	for at := m; at != nil && stop == ""; at = at.around {
		at.mu.Lock()
		switch {
		case at.limits.Tokens > 0 && at.own.Plus(at.tools).Total() >= at.limits.Tokens:
			stop = content.StopTokenLimit
		case at.limits.Cost > 0 && at.unpriced != "":
			stop, detail = content.StopCostLimit, "the price of "+at.unpriced+" is not known"
		case at.limits.Cost > 0 && at.cost >= at.limits.Cost:
			stop = content.StopCostLimit
		}
		at.mu.Unlock()
		if stop != "" && at != m && detail == "" {
			detail = textOuterLimit
		}
	}
	return stop, detail
}

// claim counts a turn or a call of this run or, with inTool, of one inside its tools. It returns false, and counts
// nothing, if this run or one around it has none left. All these meters stay locked until the answer is known, so that
// only one of several concurrent runs gets the last one.
func (m *meter) claim(call, inTool bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, limit := &m.turns, m.limits.Turns
	if call {
		n, limit = &m.calls, m.limits.Calls
	}
	within := limit <= 0 || n.all < limit
	if within && m.around != nil && !m.around.claim(call, true) {
		return false
	}

	// A call counts in the run whose limit refused it. The count then stays above the limit, so that the run stops even
	// if it pauses first.
	if within || call {
		n.all++
		if inTool {
			n.inner++
		}
	}
	return within
}

// usedUp returns the stop reason and detail for a limit that is reached or, of turns or calls, used up, of this run or
// one around it. The stop reason is "" if there is none.
//
// A limit on calls is used up once a call was refused for it. It has priority over that on turns, because it stops the
// run of that call anyway.
func (m *meter) usedUp() (stop content.Stop, detail string) {
	if stop, detail = m.reached(); stop != "" {
		return stop, detail
	}
	var turnsDetail string
	for at := m; at != nil; at = at.around {
		if at != m {
			detail = textOuterLimit
		}
		at.mu.Lock()
		turns, refused := at.limits.Turns > 0 && at.turns.all >= at.limits.Turns, at.refused()
		at.mu.Unlock()
		switch {
		case refused:
			return content.StopCallLimit, detail
		case turns && stop == "":
			stop, turnsDetail = content.StopMaxTurns, detail
		}
	}
	return stop, turnsDetail
}

// textOuterLimit is the detail of a run that was ended by a limit of a run around it.
const textOuterLimit = "the limit is that of a run around this one"

// outerLimit returns textOuterLimit after a claim that failed, unless the limit is that of the run itself.
func (m *meter) outerLimit(call bool) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if call && m.refused() || !call && m.limits.Turns > 0 && m.turns.all >= m.limits.Turns {
		return ""
	}
	return textOuterLimit
}

// refused reports whether a call was refused for the limit on calls of this run. m.mu must be held.
func (m *meter) refused() bool { return m.limits.Calls > 0 && m.calls.all > m.limits.Calls }

// repeats counts equal calls in a row.
type repeats struct {
	name, input string
	times       int
	warned      bool // of this call
}

// add counts the calls of a message. It returns a warning for the model, or "", and whether the run has to stop.
func (p *repeats) add(calls []content.ToolUse, limit int) (words string, stop bool) {
	warning := false
	for _, c := range calls {
		input := canonical(c.Input)
		if p.times == 0 || p.name != c.Name || p.input != input {
			*p, warning = repeats{name: c.Name, input: input}, false
		}
		p.times++
		stop = stop || p.times >= 2*limit
		if p.times >= limit && !p.warned {
			p.warned, warning = true, true
		}

		// Further equal calls in the message renew the text, so that it has the full count.
		if warning {
			words = fmt.Sprintf(textRepeated, p.name, p.times)
		}
	}
	return words, stop
}

// canonical returns arguments in a form independent of the order of members and of spaces. It keeps every digit of a
// number, so that two long IDs stay different.
func canonical(input content.JSON) string { return string(orEmpty(input).Canonical()) }

// begin restores the meter after a pause. open is the number of calls still without a result, which were counted
// before. It reports whether a call was refused for the limit on calls. The meters of the runs around it count all this
// already.
func (m *meter) begin(s node.Spent, open int) (refused bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.own, m.tools, m.cost = s.Usage, s.ToolUsage, s.Cost
	m.partial = s.Run != "" && !s.CostKnown
	m.turns = tally{s.Turns + s.InnerTurns, s.InnerTurns}
	m.calls = tally{s.Calls + open + s.InnerCalls, s.InnerCalls}
	return m.refused()
}
