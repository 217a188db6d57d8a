//go:build race

package edpm

// The race detector makes the model some ten times slower.
func init() { modelShare = 20 }
