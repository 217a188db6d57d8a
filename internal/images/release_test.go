package images_test

import (
	"testing"

	"github.com/edpm-operators/edpm-operators/internal/images"
)

func TestChoose(t *testing.T) {
	id := func(api string) string {
		return images.Choose(map[string]string{"api": "other"}, map[string]images.Component{"api": {Default: api}}, "").Update.ID
	}
	for name, c := range map[string]struct {
		recorded, spec, running, offered, accepted string
		want, update                               string
	}{
		"a new object has what the operators bring":           {"", "", "", "new", "", "new", ""},
		"an object keeps what is recorded":                    {"old", "", "", "new", "", "old", "new"},
		"an object of an earlier version keeps what it runs":  {"", "", "old", "new", "", "old", "new"},
		"what is recorded wins over what runs":                {"old", "", "older", "old", "", "old", ""},
		"the spec wins over all":                              {"old", "own", "old", "new", "", "own", ""},
		"the spec wins over what is accepted":                 {"own", "own", "own", "new", id("new"), "own", ""},
		"what is accepted is taken":                           {"old", "", "old", "new", id("new"), "new", ""},
		"what was accepted before is not what is brought now": {"new", "", "new", "newer", id("new"), "new", "newer"},
		"nothing is brought":                                  {"old", "", "", "", "", "old", ""},
		"nothing is known":                                    {"", "", "", "", "", "", ""},
		"nothing is brought for what is accepted":             {"old", "", "", "", "x", "old", ""},
	} {
		t.Run(name, func(t *testing.T) {
			recorded := map[string]string{}
			if c.recorded != "" {
				recorded["api"] = c.recorded
			}
			got := images.Choose(recorded, map[string]images.Component{"api": {Spec: c.spec, Running: c.running, Default: c.offered}}, c.accepted)
			update := ""
			if got.Update != nil {
				update = got.Update.Images["api"]
			}
			if got.Images["api"] != c.want || update != c.update {
				t.Errorf("the image is %q with update %q; want %q with %q", got.Images["api"], update, c.want, c.update)
			}
		})
	}
}
