package main

import (
	"flag"
	"io"
	"testing"
)

func TestTheResourcesOfRunnersAreFlags(t *testing.T) {
	for name, c := range map[string]struct {
		args             []string
		requests, limits string
		refused          bool
	}{
		"nothing is said":           {nil, "cpu=250m,memory=1Gi", "cpu=2,memory=2Gi", false},
		"both are said":             {[]string{"--runner-requests=memory=1Gi, cpu=1", "--runner-limits=memory=4Gi"}, "cpu=1,memory=1Gi", "memory=4Gi", false},
		"nothing is wanted":         {[]string{"--runner-requests=", "--runner-limits="}, "", "", false},
		"no quantity":               {[]string{"--runner-requests=cpu"}, "", "", true},
		"a quantity that is none":   {[]string{"--runner-limits=cpu=much"}, "", "", true},
		"a quantity of no resource": {[]string{"--runner-limits==1"}, "", "", true},
		"a quantity below nothing":  {[]string{"--runner-limits=cpu=-1"}, "", "", true},
	} {
		o, fs := &options{}, flag.NewFlagSet(name, flag.ContinueOnError)
		fs.SetOutput(io.Discard)
		o.bind(fs)
		if err := fs.Parse(c.args); err != nil || c.refused {
			if (err != nil) != c.refused {
				t.Errorf("%s: the error is %v; want one: %v", name, err, c.refused)
			}
			continue
		}
		requests, limits := (*resourceList)(&o.runner.Requests).String(), (*resourceList)(&o.runner.Limits).String()
		if requests != c.requests || limits != c.limits {
			t.Errorf("%s: runners request %q and are limited to %q; want %q and %q", name, requests, limits, c.requests, c.limits)
		}
	}
}
