//go:build race

package loaders_test

const racing = true
