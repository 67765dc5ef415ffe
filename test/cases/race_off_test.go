//go:build !race

package cases

// raceDetector tells that the tests, and so the gateway, are built with -race.
const raceDetector = false
