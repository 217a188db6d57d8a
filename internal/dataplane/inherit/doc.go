// Package inherit computes the effective values of a node given its role. It is the
// only place that knows the rule: the node wins field by field, ansibleVars are merged
// by their top-level keys, lists are replaced whole. It is apart from package dataplane
// because admission needs the rule, and nothing of the execution engine.
package inherit
