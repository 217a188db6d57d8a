// Package roles runs the tests of the Ansible roles on a real host:
// ansible/tests/test_roles.py. It is skipped with -short.
package roles
