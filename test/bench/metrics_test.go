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
		"": {{250, 20}, {1000, 20}, {4000, 20}, {500, 1}, {5000, 1}}, "250": {{250, 20}}, "30, 40/2": {{30, 20}, {40, 2}}, "5": nil, "x": nil, "5/x": nil, "5/0": nil, "500/1": {{500, 1}},
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
