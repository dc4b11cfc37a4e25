//go:build !race

package gemini

const raceDetector = false
