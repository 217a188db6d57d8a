package main

import (
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
	"github.com/operator-framework/api/pkg/validation/errors"
	interfaces "github.com/operator-framework/api/pkg/validation/interfaces"
)

// bundleDir is the bundle of this repository.
const bundleDir = "../../bundle"

// validators that need neither a cluster nor a registry. CommunityOperatorValidator
// is about the rules of one catalog, MultipleArchitecturesValidator runs docker.
var validators = interfaces.Validators{
	validation.ClusterServiceVersionValidator,
	validation.CustomResourceDefinitionValidator,
	validation.BundleValidator,
	validation.OperatorHubV2Validator,
	validation.StandardCapabilitiesValidator,
	validation.StandardCategoriesValidator,
	validation.ObjectValidator,
	validation.OperatorGroupValidator,
	validation.AlphaDeprecatedAPIsValidator,
	validation.GoodPracticesValidator,
}

// accepted are warnings that stay, by a part of their text, with the reason.
var accepted = map[string]string{}

func TestTheBundleIsValid(t *testing.T) {
	bundle, err := manifests.GetBundleFromDir(bundleDir)
	if err != nil {
		t.Fatal(err)
	}
	unused := map[string]bool{}
	for text := range accepted {
		unused[text] = true
	}
	for _, result := range validators.Validate(bundle.ObjectsToValidate()...) {
		for _, found := range append(result.Errors, result.Warnings...) {
			if text := reason(found); text != "" {
				delete(unused, text)
			} else {
				t.Errorf("%s: %s", result.Name, found.Error())
			}
		}
	}
	for text := range unused {
		t.Errorf("nothing is warned of any more with %q: take it off the list", text)
	}
}

// reason returns which of the accepted warnings this is, "" if none.
func reason(found errors.Error) string {
	for text := range accepted {
		if found.Level == errors.LevelWarn && strings.Contains(found.Error(), text) {
			return text
		}
	}
	return ""
}

// The validators find what is wrong: were they given nothing to look at, the test
// above would say the same.
func TestAnInvalidBundleIsFound(t *testing.T) {
	bundle, err := manifests.GetBundleFromDir(bundleDir)
	if err != nil {
		t.Fatal(err)
	}
	bundle.CSV.Spec.CustomResourceDefinitions.Owned = bundle.CSV.Spec.CustomResourceDefinitions.Owned[1:]
	bundle.CSV.Spec.Icon = nil
	var found []string
	for _, result := range validators.Validate(bundle.ObjectsToValidate()...) {
		for _, problem := range append(result.Errors, result.Warnings...) {
			found = append(found, problem.Error())
		}
	}
	all := strings.Join(found, "\n")
	for _, want := range []string{"is present in bundle", "example must have a provided API", "csv.Spec.Icon not specified"} {
		if !strings.Contains(all, want) {
			t.Errorf("no one says %q:\n%s", want, all)
		}
	}
}
