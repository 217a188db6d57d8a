package v1beta1

import (
	"encoding/json"
	"testing"
)

// Results are read as they are stored, also those of operators and runner images
// of before.
func TestHostStatus(t *testing.T) {
	for name, c := range map[string]struct {
		stored               string
		converged, untouched bool
	}{
		"all is well": {`{"name":"a","ok":3,"stepsDone":1}`, true, false},
		"all is well, of an image that records no steps":    {`{"name":"a","ok":3}`, true, false},
		"stood by when the play was aborted":                {`{"name":"a","ok":1,"changed":1,"stepsDone":0}`, false, false},
		"failed":                                            {`{"name":"a","ok":3,"failed":1,"stepsDone":0}`, false, false},
		"failed after it had reached the end of one step":   {`{"name":"a","ok":3,"failed":1,"stepsDone":1}`, false, false},
		"failed in the first task":                          {`{"name":"a","failed":1,"stepsDone":0}`, false, false},
		"not reached":                                       {`{"name":"a","stepsDone":0}`, false, true},
		"nothing to do":                                     {`{"name":"a","skipped":2,"stepsDone":1}`, false, true},
		"never answered":                                    {`{"name":"a","unreachable":1,"stepsDone":0,"notConnected":true}`, false, true},
		"lost during the first task":                        {`{"name":"a","unreachable":1,"stepsDone":0}`, false, false},
		"unreachable, of an image that does not record how": {`{"name":"a","unreachable":1}`, false, false},
		"lost during a later task":                          {`{"name":"a","ok":1,"unreachable":1,"stepsDone":0,"notConnected":true}`, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			var h HostStatus
			if err := json.Unmarshal([]byte(c.stored), &h); err != nil {
				t.Fatal(err)
			}
			if h.Converged() != c.converged || h.Untouched() != c.untouched {
				t.Errorf("%s: Converged is %v, Untouched is %v; want %v, %v", c.stored, h.Converged(), h.Untouched(), c.converged, c.untouched)
			}
		})
	}
}
