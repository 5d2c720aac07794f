//go:build !race

package graph

// detectsRaces tells whether the tests are built with the race detector, which allocates itself.
const detectsRaces = false
