package main

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestShare(t *testing.T) {
	k := kind{}
	k.objects = append(k.objects, make([]unstructured.Unstructured, 3)...)
	for _, total := range []int{0, 1, 3, 7, 100} {
		sum := 0
		for i := range k.objects {
			sum += k.share(total, i)
		}
		if sum != total {
			t.Errorf("shares of %d add up to %d", total, sum)
		}
	}
}

func TestParse(t *testing.T) {
	for sizes, want := range map[string][]load{
		"":    {{200, 4, true}, {250, 20, false}, {1000, 20, false}, {4000, 20, false}, {500, 1, false}, {5000, 1, false}},
		"250": {{250, 20, false}}, "30, 40/2": {{30, 20, false}, {40, 2, false}}, "500/1": {{500, 1, false}}, "200+": {{200, 20, true}},
		"5": nil, "x": nil, "5/x": nil, "5/0": nil, "+": nil,
	} {
		o, err := parse(nil, sizes)
		if (err == nil) != (want != nil) {
			t.Errorf("BENCH_N=%q: error %v", sizes, err)
		}
		if err == nil && !slices.Equal(o.sizes, want) {
			t.Errorf("BENCH_N=%q: got %v, want %v", sizes, o.sizes, want)
		}
	}
}
