//go:build !race

package dynamo

// raceDetector tells whether the tests run under the race detector, which allocates as well.
const raceDetector = false
