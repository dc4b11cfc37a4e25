// Package gptname reads the names of OpenAI's own models.
package gptname

import (
	"regexp"
	"strconv"
)

// Breakpoints is the first generation whose prompt cache has breakpoints: GPT-5.6.
const Breakpoints = 506

var own = regexp.MustCompile(`^(?:openai/)?(?:ft:)?(?:gpt-(\d+)(?:\.(\d+))?|chatgpt-|o\d)`)

// Generation returns the generation of one of OpenAI's models: 506 for GPT-5.6, 400 for GPT-4o. It is 0 for a name
// without a number, such as "o3", and not ok for a model of somebody else or an open-weight one.
func Generation(model string) (generation int, ok bool) {
	m := own.FindStringSubmatch(model)
	if m == nil {
		return 0, false
	}

	const limit = 100
	major, _ := strconv.Atoi(m[1])
	minor, _ := strconv.Atoi(m[2])
	return limit*min(major, limit) + min(minor, limit-1), true
}
