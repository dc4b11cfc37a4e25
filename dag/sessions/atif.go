package sessions

import (
	"strings"

	"github.com/plait-dev/plait/content"
)

// atifVersion is the version of the format. It is one that has the definitions of tools.
const atifVersion = "ATIF-v1.7"

type atifStep struct {
	ID          int          `json:"step_id"`
	Timestamp   string       `json:"timestamp,omitempty"`
	Source      string       `json:"source"` // "system", "user" or "agent"
	Model       string       `json:"model_name,omitempty"`
	Message     any          `json:"message"`
	Reasoning   string       `json:"reasoning_content,omitempty"`
	Calls       []atifCall   `json:"tool_calls,omitempty"`
	Observation *atifResults `json:"observation,omitempty"`
	Metrics     *atifMetrics `json:"metrics,omitempty"`
}

type atifCall struct {
	ID       string `json:"tool_call_id"`
	Function string `json:"function_name"`
	Input    any    `json:"arguments"`
}

type atifResults struct {
	Results []atifResult `json:"results"`
}

type atifResult struct {
	CallID  string `json:"source_call_id"`
	Content any    `json:"content"`
}

type atifMetrics struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Cached     int64 `json:"cached_tokens"`
}

// atif writes a trajectory.
func (x *exporter) atif() error {
	steps := []atifStep{}
	for _, prompt := range x.system {
		steps = append(steps, atifStep{Source: "system", Message: prompt, Timestamp: rfc(x.began)})
	}
	var total content.Usage
	for i := range x.turns {
		s := &x.turns[i]
		step := atifStep{Source: "user", Timestamp: rfc(s.time)}
		if s.role == content.User {
			step.Message = x.atifParts(s.blocks)
		} else {
			x.atifResponse(&step, s)
			total = total.Plus(s.answer.Usage)
		}
		steps = append(steps, step)
	}
	for i := range steps {
		steps[i].ID = i + 1
	}

	agent := map[string]any{"name": "plait", "version": "unknown", "model_name": x.opts.Model}
	var tools []any
	for _, t := range x.tools {
		function := map[string]any{"name": t.Name, "description": t.Description, "parameters": x.object(t.Schema)}
		tools = append(tools, map[string]any{"type": "function", "function": function})
	}
	if len(tools) > 0 {
		agent["tool_definitions"] = tools
	}
	return x.line(map[string]any{
		"schema_version": atifVersion, "session_id": x.session.String(), "agent": agent, "steps": steps,
		"final_metrics": map[string]any{
			"total_prompt_tokens": total.Input + total.CacheRead + total.CacheWrite, "total_completion_tokens": total.Output,
			"total_cached_tokens": total.CacheRead, "total_steps": len(steps),
		},
	})
}

// atifResponse fills in the step of a response.
func (x *exporter) atifResponse(step *atifStep, s *spoken) {
	step.Source, step.Model = "agent", s.answer.Model
	x.stop(s.answer, nil)
	u := s.answer.Usage
	if s.answer.ResponseID != "" || u.CacheWrite > 0 || u.Reasoning > 0 {
		x.lose(LossAnswers, 1)
	}
	step.Metrics = &atifMetrics{u.Input + u.CacheRead + u.CacheWrite, u.Output, u.CacheRead}

	var words, thoughts []string
	call := 0
	for i, b := range s.blocks {
		switch b := b.(type) {
		case content.Text:
			x.extra(b.Extra)
			if words = append(words, b.Text); i > 0 && call > 0 {
				x.lose(LossOrder, 1)
			}
		case content.Thinking:
			if b.Signature != "" || b.Redacted != "" {
				x.lose(LossThinking, 1)
			}
			if b.Text != "" {
				thoughts = append(thoughts, b.Text)
			}
		case content.ToolUse:
			x.extra(b.Extra)
			c := &s.calls[call]
			call++
			step.Calls = append(step.Calls, atifCall{c.id, c.Name, x.object(c.Input)})
			if !c.answered {
				continue
			}
			if c.result.IsError {
				x.lose(LossErrors, 1)
			}
			if step.Observation == nil {
				step.Observation = &atifResults{}
			}
			step.Observation.Results = append(step.Observation.Results, atifResult{c.id, x.atifParts(c.result.Content.Slice())})
		default:
			x.lose(LossBlocks, 1)
		}
	}
	x.lose(LossTexts, max(len(words)-1, 0)+max(len(thoughts)-1, 0))
	step.Message, step.Reasoning = strings.Join(words, "\n\n"), strings.Join(thoughts, "\n\n")
}

// atifParts returns blocks as a text, or as a list of parts if there are images.
func (x *exporter) atifParts(blocks []content.Block) any {
	var words []string
	var parts []any
	images := false

	for _, b := range blocks {
		switch b := b.(type) {
		case content.Text:
			x.extra(b.Extra)
			words = append(words, b.Text)
			parts = append(parts, map[string]any{"type": "text", "text": b.Text})
		case content.Image:
			url := dataURL(b.Source)
			if url == "" {
				x.lose(LossBlocks, 1)
				continue
			}
			images = true
			source := map[string]string{"media_type": b.Source.MediaType, "path": url}
			parts = append(parts, map[string]any{"type": "image", "source": source})
		default:
			x.lose(LossBlocks, 1)
		}
	}

	if images {
		return parts
	}
	x.lose(LossTexts, max(len(words)-1, 0))
	return strings.Join(words, "\n\n")
}
