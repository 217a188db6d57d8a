package envtest

import (
	"log"
	"sync"
)

// Shared is one API server for the tests of a package: the first test that asks for
// it starts it, and it stops when the process ends. Its tests use namespaces of their
// own, or remove what they create.
type Shared struct {
	Options

	once sync.Once
	env  *Env
	stop func() error
	err  error
}

// Env returns the API server.
func (s *Shared) Env(t T) *Env {
	t.Helper()
	s.once.Do(func() { s.env, s.stop, s.err = start(s.Options) })
	if s.err != nil {
		t.Fatalf("%v", s.err)
	}
	return s.env
}

// Run runs the tests and then stops the API servers. TestMain exits with what it
// returns.
func Run(tests interface{ Run() int }, servers ...*Shared) int {
	code := tests.Run()
	for _, s := range servers {
		if s.stop == nil {
			continue // no test asked for it
		}
		if err := s.stop(); err != nil {
			log.Printf("Failed to stop the API server: %v", err)
			code = max(code, 1)
		}
	}
	return code
}
