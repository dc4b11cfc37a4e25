package sessions

import (
	"strings"

	"github.com/plait-dev/plait/content"
)

// atifVersion is the version of the format. It is one that has the definitions of tools.
const atifVersion = "ATIF-v1.7"

// atif writes a trajectory.
func (x *exporter) atif() {
	x.only("")
	steps := []fields{}
	for _, prompt := range x.system {
		steps = append(steps, fields{"source": "system", "message": prompt, "timestamp": rfc(x.began)})
	}
	var total content.Usage
	for i := range x.turns {
		s := &x.turns[i]
		step := fields{"source": "user", "timestamp": rfc(s.time)}
		if s.role == content.User {
			step["message"] = x.atifContent(s.blocks)
		} else {
			x.atifResponse(step, s)
			total = total.Plus(s.answer.Usage)
		}
		steps = append(steps, step)
	}
	for i := range steps {
		steps[i]["step_id"] = i + 1
	}

	agent := fields{"name": "plait", "version": "unknown", "model_name": x.opts.Model}
	var tools []any
	for _, t := range x.tools {
		function := fields{"name": t.Name, "description": t.Description, "parameters": x.object(t.Schema)}
		tools = append(tools, fields{"type": "function", "function": function})
	}
	if len(tools) > 0 {
		agent["tool_definitions"] = tools
	}
	x.line(fields{
		"schema_version": atifVersion, "session_id": x.session.String(), "agent": agent, "steps": steps,
		"final_metrics": fields{
			"total_prompt_tokens": total.Input + total.CacheRead + total.CacheWrite, "total_completion_tokens": total.Output,
			"total_cached_tokens": total.CacheRead, "total_steps": len(steps),
		},
	})
}

// atifResponse fills in the step of a response.
func (x *exporter) atifResponse(step fields, s *spoken) {
	x.stop(s.answer, nil)
	u := s.answer.Usage
	if s.answer.ResponseID != "" || u.CacheWrite > 0 || u.Reasoning > 0 {
		x.lose(LossAnswers, 1)
	}

	var words, thoughts []string
	var calls, results []any
	x.parts(s.blocks, s.calls, func(b content.Block, c *called) any {
		switch b := b.(type) {
		case content.Text:
			if words = append(words, b.Text); len(calls) > 0 {
				x.lose(LossOrder, 1)
			}
			return x.with(fields{}, b.Extra, "")
		case content.Thinking:
			if thoughts = append(thoughts, b.Text); b.Signature+b.Redacted == "" {
				return x.with(fields{}, b.Extra, "")
			}
		case content.ToolUse:
			calls = append(calls, fields{"tool_call_id": c.id, "function_name": c.Name, "arguments": x.object(c.Input)})
			if c.answered {
				results = append(results, fields{"source_call_id": c.id, "content": x.atifContent(c.result.Content.Slice())})
			}
			if c.result.IsError {
				x.lose(LossErrors, 1)
			}
			return x.with(x.with(fields{}, b.Extra, ""), c.result.Extra, "")
		}
		return nil
	})
	x.lose(LossTexts, max(len(words)-1, 0)+max(len(thoughts)-1, 0))

	step["source"], step["message"] = "agent", strings.Join(words, "\n\n")
	step["metrics"] = fields{
		"prompt_tokens": u.Input + u.CacheRead + u.CacheWrite, "completion_tokens": u.Output, "cached_tokens": u.CacheRead,
	}
	if s.answer.Model != "" {
		step["model_name"] = s.answer.Model
	}
	if len(thoughts) > 0 {
		step["reasoning_content"] = strings.Join(thoughts, "\n\n")
	}
	if len(calls) > 0 {
		step["tool_calls"] = calls
	}
	if len(results) > 0 {
		step["observation"] = fields{"results": results}
	}
}

// atifContent returns blocks as a text, or as a list of parts if there are images.
func (x *exporter) atifContent(blocks []content.Block) any {
	var words []string
	parts := x.parts(blocks, nil, func(b content.Block, _ *called) any {
		switch b := b.(type) {
		case content.Text:
			words = append(words, b.Text)
			return x.with(fields{"type": "text", "text": b.Text}, b.Extra, "")
		case content.Image:
			if path := dataURL(b.Source); path != "" {
				return fields{"type": "image", "source": fields{"media_type": b.Source.MediaType, "path": path}}
			}
		}
		return nil
	})

	if len(words) < len(parts) {
		return parts
	}
	x.lose(LossTexts, max(len(words)-1, 0))
	return strings.Join(words, "\n\n")
}
