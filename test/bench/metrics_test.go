package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
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
	for sizes, want := range map[string][]int{"": {250, 1000, 4000}, "250": {250}, "30, 40": {30, 40}, "5": nil, "x": nil} {
		o, err := parse(nil, sizes)
		if (err == nil) != (want != nil) {
			t.Errorf("BENCH_N=%q: error %v", sizes, err)
		}
		if err == nil && !cmp.Equal(o.sizes, want) {
			t.Errorf("BENCH_N=%q: got %v, want %v", sizes, o.sizes, want)
		}
	}
}
