package toolsearch

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	json "github.com/goccy/go-json/v2"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/safetext"
)

const (
	toolName = "find_tools"
	most     = 8   // tools found by one search
	longest  = 200 // characters of a description in a result
)

// Add returns an agent that finds these tools when it needs them. It has the tool "find_tools" beside its own, and a
// hook that declares what was found. Of two tools with the same name, the later one counts.
//
// A run of the agent is refused for the same tools as with Agent.Tools: one that is nil or cannot be declared, and one
// of an MCP server with the name of another owner's tool.
func Add(a executor.Agent, tools ...executor.Tool) executor.Agent {
	c := newCatalog(tools)
	a.Tools = slices.Concat(a.Tools, c.broken, []dag.Tool{executor.WithEffect(c.tool(), executor.EffectReadOnly)})
	a.OnDemand = append(slices.Clip(a.OnDemand), c.tools...)
	a.Hooks = append(slices.Clip(a.Hooks), executor.Hook{Next: c.declare})
	return a
}

// catalog holds the tools and their words. It is never changed.
type catalog struct {
	tools []dag.Tool
	defs  []content.Tool
	byDef map[string]int   // index in tools, by name
	words map[string][]int // the tools that have a word in their name or description, each once, in order

	broken []dag.Tool // nil, or cannot be declared: the beginning of a run reports it
}

func newCatalog(tools []executor.Tool) *catalog {
	c := &catalog{byDef: map[string]int{}, words: map[string][]int{}}
	for _, t := range tools {
		if dag.New().Tools(t).Err() != nil {
			c.broken = append(c.broken, t)
			continue
		}
		def := t.Definition()
		i, again := c.byDef[def.Name]
		if !again {
			i = len(c.tools)
			c.tools, c.defs, c.byDef[def.Name] = append(c.tools, nil), append(c.defs, content.Tool{}), i
		}
		c.tools[i], c.defs[i] = t, def
	}
	for i, def := range c.defs {
		for _, word := range wordsOf(def.Name + " " + def.Description) {
			c.words[word] = append(c.words[word], i)
		}
	}
	return c
}

// wordsOf returns the words of a text in lower case, without repetition.
func wordsOf(text string) []string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	slices.Sort(words)
	return slices.Compact(words)
}

// search returns the tools that fit best: the more words, and the fewer tools have them, the better.
func (c *catalog) search(query string) []int {
	scores := map[int]float64{}
	for _, word := range wordsOf(query) {
		having := c.words[word]
		for _, i := range having {
			scores[i] += 1 / float64(len(having))
		}
	}

	found := make([]int, 0, len(scores))
	for i := range scores {
		found = append(found, i)
	}
	slices.SortFunc(found, func(i, j int) int { return cmp.Or(cmp.Compare(scores[j], scores[i]), cmp.Compare(i, j)) })
	return found[:min(len(found), most)]
}

// tool returns the tool for the model.
func (c *catalog) tool() executor.Tool {
	type input struct {
		Words string `json:"words" jsonschema:"what the tool should do, in a few words"`
	}
	description := fmt.Sprintf("Finds tools among %d more. The tools found can be called from your next turn on.", len(c.tools))
	return executor.Func(toolName, description, func(_ context.Context, in input) (executor.Result, error) {
		var text strings.Builder
		names := []string{}
		for _, i := range c.search(in.Words) {
			names = append(names, c.defs[i].Name)
			fmt.Fprintf(&text, "%s: %s\n", c.defs[i].Name, safetext.Line(c.defs[i].Description, longest))
		}
		if len(names) == 0 {
			return executor.Result{Content: content.Words("No tool was found. Try other words.")}, nil
		}
		details, err := json.Marshal(names)
		return executor.Result{Content: content.Words(text.String()), Details: content.JSON(details)}, err
	})
}

// declare declares the tools that were found in a turn.
func (c *catalog) declare(_ context.Context, turn executor.Turn) (executor.Turn, error) {
	var found []dag.Tool
	for _, e := range turn.Executions {
		var names []string
		if e.Tool != toolName || e.IsError || json.Unmarshal([]byte(e.Details), &names) != nil {
			continue
		}
		for _, name := range names {
			if i, has := c.byDef[name]; has { // in a resumed run, the program may no longer have it
				found = append(found, c.tools[i])
			}
		}
	}
	if len(found) > 0 {
		turn.DAG = turn.DAG.Tools(found...)
	}
	return turn, turn.DAG.Err()
}
