//go:build race

package gemini

const raceDetector = true
