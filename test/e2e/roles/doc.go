// Package roles runs the tests of the Ansible roles on a real host:
// ansible/tests/test_roles.py, test_other_tools.py, test_cold_migration.py, test_ovn.py and test_classes.py. They are skipped with -short.
package roles
