package furtherfiles

import (
	"regexp"
	"strings"
	"testing"
)

const uuid = "01234567-89ab-cdef-0123-456789abcdef"

// define is a definition with one provider that has the lines, the first of which is line 4.
func define(lines ...string) string {
	return "meta:\n  schema_version: '1.0'\nproviders:\n- " + strings.Join(lines, "\n  ") + "\n"
}

const (
	itself  = "identification: {uuid: $COMPUTE_NODE}"
	trait   = "traits: {additional: [CUSTOM_A]}"
	twoOfIt = "- identification: {name: a}\n  traits: {additional: [CUSTOM_A]}\n- identification: {name: a}\n  traits: {additional: [CUSTOM_B]}\n"
)

func TestDefinitionsOfProvidersAreThoseThatNovaTakes(t *testing.T) {
	const secret = "HUNTER2"
	for name, c := range map[string]struct{ text, want string }{
		"the example of nova": {"meta:\n  schema_version: '1.0'\nproviders:\n  - identification:\n      uuid: $COMPUTE_NODE\n    inventories:\n      additional:\n        - CUSTOM_EXAMPLE_RESOURCE_CLASS:\n" +
			"            total: 100\n            reserved: 0\n            min_unit: 1\n            max_unit: 10\n            step_size: 1\n            allocation_ratio: 1.0\n    traits:\n      additional:\n        - 'CUSTOM_EXAMPLE_TRAIT'\n", ""},
		"without providers":                   {"meta: {schema_version: '1.7', more: 1}\nmore: {}\n", ""},
		"a provider with what is not known":   {define("identification: {name: a}", "more: 1", "traits: {more: 1}", "inventories: {more: [1]}"), ""},
		"a provider by its UUID":              {define("identification: {uuid: " + uuid + "}"), ""},
		"an integer with a fraction of zero":  {define(itself, "inventories: {additional: [{CUSTOM_A: {total: 4.0}}]}"), ""},
		"what is merged":                      {"meta: &m {schema_version: '1.0'}\nproviders:\n- identification: {name: a}\n  traits: &t {additional: [CUSTOM_A]}\n- identification: {name: b}\n  traits: {<<: *t}\n", ""},
		"one twice of which one adds nothing": {"meta: {schema_version: '1.0'}\nproviders:\n- identification: {name: a}\n" + twoOfIt[:strings.LastIndex(twoOfIt, "- ")], ""},

		"without meta":                 {"providers: []\n", "line 1: the file must have meta"},
		"meta that is a word":          {"\nmeta: HUNTER2\n", "line 2: meta must be a mapping"},
		"without a version":            {"meta: {}\n", "line 1: meta must have schema_version"},
		"a version that is a number":   {"meta:\n  schema_version: 1.0\n", "line 2: meta.schema_version must be '1.0', in quotes"},
		"a version of another nova":    {"meta:\n  schema_version: '2.0'\n", "line 2: meta.schema_version must be '1.0', in quotes"},
		"a source":                     {"meta: {schema_version: '1.0'}\n__source_file: HUNTER2\n", "line 2: __source_file is reserved for nova: remove it"},
		"providers that are no list":   {"meta: {schema_version: '1.0'}\nproviders:\n  HUNTER2: {}\n", "line 2: providers must be a list"},
		"providers that are none":      {"meta: {schema_version: '1.0'}\nproviders:\n", "line 2: providers must be a list"},
		"a provider that is a word":    {define("HUNTER2"), "line 4: providers[0] must be a mapping"},
		"a provider without a name":    {define(trait), "line 4: providers[0] must have identification"},
		"an empty identification":      {define("identification: {}"), "line 4: providers[0].identification must have one of uuid and name"},
		"two identifications":          {define("identification:", "  name: a", "  uuid: "+uuid), "line 4: providers[0].identification must have one of uuid and name"},
		"an unknown identification":    {define("identification:", "  HUNTER2: a"), "line 5: providers[0].identification has a key that is neither uuid nor name: remove it"},
		"a UUID that is none":          {define("identification:", "  uuid: HUNTER2"), "line 5: providers[0].identification.uuid must be a UUID or $COMPUTE_NODE"},
		"a name that is a number":      {define("identification: {name: 12}"), "line 4: providers[0].identification.name must be a text of 1 to 200 characters, in quotes"},
		"an empty name":                {define("identification: {name: ''}"), "line 4: providers[0].identification.name must be a text of 1 to 200 characters, in quotes"},
		"a trait of nova":              {define(itself, "traits:", "  additional:", "  - CUSTOM_A", "  - HUNTER2"), "line 8: providers[0].traits.additional[1] must be CUSTOM_ with capital letters, digits and _"},
		"a trait in small letters":     {define(itself, "traits: {additional: [custom_a]}"), "line 5: providers[0].traits.additional[0] must be CUSTOM_ with capital letters, digits and _"},
		"traits that are a list":       {define(itself, "traits: [CUSTOM_A]"), "line 5: providers[0].traits must be a mapping"},
		"a resource class of nova":     {define(itself, "inventories:", "  additional:", "  - HUNTER2: {total: 1}"), "line 7: providers[0].inventories.additional[0] must be CUSTOM_ with capital letters, digits and _"},
		"classes that are a mapping":   {define(itself, "inventories: {additional: {CUSTOM_A: {total: 1}}}"), "line 5: providers[0].inventories.additional must be a list"},
		"a class that is a word":       {define(itself, "inventories: {additional: [CUSTOM_A]}"), "line 5: providers[0].inventories.additional[0] must be a mapping"},
		"an inventory without a total": {define(itself, "inventories: {additional: [{CUSTOM_A: {reserved: 1}}]}"), "line 5: providers[0].inventories.additional[0] must have total"},
		"a total that is a text":       {define(itself, "inventories: {additional: [{CUSTOM_A: {total: '1'}}]}"), "line 5: providers[0].inventories.additional[0].total must be an integer"},
		"a total with a fraction":      {define(itself, "inventories: {additional: [{CUSTOM_A: {total: 1.5}}]}"), "line 5: providers[0].inventories.additional[0].total must be an integer"},
		"a ratio that is a text":       {define(itself, "inventories: {additional: [{CUSTOM_A: {total: 1, allocation_ratio: a}}]}"), "line 5: providers[0].inventories.additional[0].allocation_ratio must be a number"},
		"an unknown key of an inventory": {define(itself, "inventories: {additional: [{CUSTOM_A: {total: 1, HUNTER2: 2}}]}"),
			"line 5: providers[0].inventories.additional[0] has a key that is none of total, reserved, min_unit, max_unit, step_size and allocation_ratio: remove it"},
		"a key that is no text": {define(itself, "inventories: {additional: [{1: {total: 1}}]}"), "line 5: providers[0].inventories.additional[0] must be a mapping"},
		"one twice":             {"meta: {schema_version: '1.0'}\nproviders:\n" + twoOfIt, "line 5: providers[1].identification is that of providers[0], too"},
		"what is merged, with a mistake": {"meta: {schema_version: '1.0'}\nproviders:\n- identification: {name: a}\n  traits: &t {additional: [a]}\n- identification: {name: b}\n  traits: *t\n",
			"line 4: providers[0].traits.additional[0] must be CUSTOM_ with capital letters, digits and _"},
	} {
		t.Run(name, func(t *testing.T) {
			want := c.want
			if want != "" {
				want += ": correct it"
			}
			got := problem("provider.yaml", c.text)
			if got != want {
				t.Errorf("it is %q, want %q", got, want)
			}
			if strings.Contains(got, secret) {
				t.Errorf("a text, which may be of a Secret, shows in %q", got)
			}
		})
	}
}

// said is what a message can have: fields of nova, and no word of the file.
var said = regexp.MustCompile(`^line \d+: (the file|(__source_file|meta|schema_version|providers|identification|uuid|name|inventories|traits|additional|total|reserved|min_unit|max_unit|step_size|allocation_ratio|[.]|\[\d+\])+) (must|has a key|is) [^"]*$`)

func FuzzDefinitionsOfProviders(f *testing.F) {
	for _, seed := range []string{define(itself, trait), define("identification: {name: a}", "inventories: {additional: [{CUSTOM_A: {total: 1}}]}"), "meta: &a {schema_version: '1.0', <<: *a}\n", "meta: {? [a] : b}\nproviders: [*a, &a {}]", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, content string) {
		if why := providersProblem(content); why != "" && why != "line 1: is not valid YAML" && !said.MatchString(why) {
			t.Errorf("it is %q", why)
		}
	})
}
