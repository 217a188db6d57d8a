// Package drain empties hosts of their guests: of those that run by migrations, and of those
// that are off by evacuations. Judge decides, from what nova reports of a
// host, which call each guest needs; Carry does it; Outcome says how far it is. All
// is derived from nova's answers each time, so that another manager continues. The phases
// are in internal/nova/registration, and the stories are in controllers/drain_test.go and
// controllers/evacuation_test.go.
package drain
