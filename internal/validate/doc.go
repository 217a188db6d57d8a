// Package validate holds the rules that more than one kind needs. Each takes
// the path and the value of a field and returns a field.ErrorList whose entries
// name the field, the value and what to write instead.
//
// Values of Ansible variables, inventories, playbooks and oslo.config snippets
// may hold secrets: their errors carry a line number and never the text.
//
// This is the only package that knows the validation library.
package validate
