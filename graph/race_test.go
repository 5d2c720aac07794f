//go:build race

package graph

const racing = true
