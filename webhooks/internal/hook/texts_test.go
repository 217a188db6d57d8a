package hook_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/edpm-operators/edpm-operators/internal/catalogue"
	"github.com/edpm-operators/edpm-operators/webhooks/internal/hook"
)

// found are the options of the image "known"; those of "broken" cannot be read.
type found struct{}

func (found) Find(_ context.Context, _, image string) (*catalogue.Catalogue, error) {
	switch image {
	case "known":
		return catalogue.Parse(strings.NewReader(`{"options": {"vault": {"opts": [
			{"dest": "pin", "type": "integer value", "secret": true}, {"dest": "tries", "type": "integer value"}]}}}`))
	case "broken":
		return nil, errors.New("broken")
	}
	return nil, nil
}

// read are rules of ConfigMaps whose data are texts by the names of their images.
var read = hook.Rules[*corev1.ConfigMap]{
	Errors: func(*corev1.ConfigMap) field.ErrorList { return nil },
	Texts: func(m *corev1.ConfigMap) []hook.Text {
		var texts []hook.Text
		for image, config := range m.Data {
			texts = append(texts, hook.Text{Path: field.NewPath("data").Key(image), Image: image, Config: config})
		}
		return texts
	},
}

func TestTextsAreJudgedByTheirImage(t *testing.T) {
	const wrong = "[vault]\ntries = few\n"
	tests := map[string]struct {
		old, now map[string]string
		warnings []string
		refused  string
	}{
		"what the image cannot read is refused":               {nil, map[string]string{"known": wrong}, nil, `data[known]: Forbidden: line 2: [vault] tries is "few", but should be an integer`},
		"a secret is not shown":                               {nil, map[string]string{"known": "[vault]\npin = hunter2"}, nil, `data[known]: Forbidden: line 2: [vault] pin should be an integer`},
		"what the image ignores is a warning":                 {nil, map[string]string{"known": "[vault]\ntris = 1"}, []string{"data[known]: line 2: the image does not know [vault] tris and ignores it: do you mean [vault] tries?"}, ""},
		"what is there already does not hold up other fields": {map[string]string{"other": wrong}, map[string]string{"known": wrong}, nil, ""},
		"a text that is changed is judged":                    {map[string]string{"known": "[vault]\n"}, map[string]string{"known": wrong}, nil, `data[known]: Forbidden: line 2: [vault] tries is "few", but should be an integer`},
		"without options of its image a text is not judged":   {nil, map[string]string{"other": wrong}, nil, ""},
		"options that cannot be found do not hold up a text":  {nil, map[string]string{"broken": wrong}, nil, ""},
		"a text that cannot be read is for other rules":       {nil, map[string]string{"known": "x"}, nil, ""},
	}
	rules := read.Known(found{})
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			now, old := configMap(), configMap()
			now.Data, old.Data = tt.now, tt.old
			warnings, err := rules.ValidateUpdate(t.Context(), old, now)
			if tt.old == nil {
				warnings, err = rules.ValidateCreate(t.Context(), now)
			}
			if tt.refused != "" {
				tt.refused = ` "m" is invalid: ` + tt.refused
			}
			verdict(t, err, tt.refused)
			if diff := cmp.Diff(tt.warnings, []string(warnings)); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}
