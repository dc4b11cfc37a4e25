//go:build race

package anthropic

const raceDetector = true
