// Package drain empties hosts of their guests. Judge decides, from what nova reports of a
// host, which call each guest needs; Carry does it; Outcome says how far it is. All
// is derived from nova's answers each time, so that another manager continues. The phase
// is in internal/nova/registration, and the stories are in controllers/drain_test.go.
package drain
