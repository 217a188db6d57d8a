package catalogue

import (
	"math"
	"strconv"
	"strings"
	"testing"
)

func limit(f float64) *float64 { return &f }

// The values are those of which oslo_config/types.py decides otherwise than one may think;
// TestVerdictsAgreeWithNova draws more.
func TestTypes(t *testing.T) {
	tests := map[string]struct {
		option      Option
		taken, left []string
	}{
		"boolean":             {Option{Type: "boolean value"}, []string{"on", "NO", "1"}, []string{"", "2", " true", "t"}},
		"integer":             {Option{Type: "integer value"}, []string{"", " 5 ", "007", "1_000", "+5", "٣", "𝟗", strings.Repeat("9", 4300)}, []string{"_1", "1__0", "0x10", "1.0", "--5", "²", strings.Repeat("9", 4301)}},
		"integer in a range":  {Option{Type: "integer value", Min: limit(0), Max: limit(28)}, []string{"0", "28", "-0"}, []string{"-1", "29", "99999999999999999999"}},
		"integer of choices":  {Option{Type: "integer value", Choices: []string{"256", "512"}}, []string{"256", "0512"}, []string{"257"}},
		"port":                {Option{Type: "port value", Min: limit(0), Max: limit(65535)}, []string{"0", "65535"}, []string{"65536", "http"}},
		"float":               {Option{Type: "floating point value"}, []string{"", ".5", "5.", "1e400", "inf", "-Infinity", "nan", "1_0.5"}, []string{"0x1p3", "1,5", "1e", "."}},
		"float in a range":    {Option{Type: "floating point value", Min: limit(0)}, []string{"0", "nan", "inf"}, []string{"-0.1", "-inf", "-1e400"}},
		"text of choices":     {Option{Type: "string value", Choices: []string{"", "project"}}, []string{"", "project", "Project"}, []string{"projec", " project"}},
		"dictionary":          {Option{Type: "dict value"}, []string{"", "a:b", "a,b:c", "a:b,c:d:e"}, []string{"a", "a:b,c", ":b", "a:b,a:c", "a:b,"}},
		"address":             {Option{Type: "IP address value"}, []string{"192.0.2.1", "::1", "::ffff:192.0.2.1"}, []string{"", "1.2.3", "01.2.3.4", "fe80::1%eth0"}},
		"host":                {Option{Type: "host address value"}, []string{"h", "h.example.org.", "::", "1-2", strings.Repeat("a", 63)}, []string{"", "h_x", "-h", "h-", "a..b", "h.1", "1.2.3", strings.Repeat("a", 64)}},
		"domain":              {Option{Type: "host domain value"}, []string{"h_x", "192.0.2.1"}, []string{"h x", ""}},
		"address with scheme": {Option{Type: "uri value"}, []string{"http://h", "http://u:p@[::1]:80/a b?x", "http://h/%zz"}, []string{"h", "http://", "//h", "http://h:port/", "http://h/[", "http://[::g]/", "http://300.1.1.1/"}},
		"what is not known":   {Option{Type: "list value"}, []string{"", "[", "a,b"}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for _, value := range tt.taken {
				if expected := tt.option.expected(value); expected != "" {
					t.Errorf("%q is refused: %s", value, expected)
				}
			}
			for _, value := range tt.left {
				if tt.option.expected(value) == "" {
					t.Errorf("%q is taken", value)
				}
			}
		})
	}
}

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{{"cpu_mdoe", "cpu_mode", 1}, {"kitten", "sitting", 3}, {"", "ab", 2}, {"a", "a", 0}, {"abcdefghij", "a", 5}} {
		if got := distance(tt.a, tt.b, 5); got != tt.want {
			t.Errorf("from %q to %q: want %d, got %d", tt.a, tt.b, tt.want, got)
		}
	}
}

// FuzzTypes looks for values that stop the manager, and compares numbers with those of Go,
// which reads fewer of them.
func FuzzTypes(f *testing.F) {
	for _, seed := range []string{"", "1", "-1_0", "٣", "nan", "1e999999999", "a:b,c", "::1", "h_x", "http://[::1]/", "\x00", "$x", "𝟗", "\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		for name := range types {
			for _, o := range []Option{{Type: name}, {Type: name, Min: limit(0), Max: limit(10)}, {Type: name, Choices: []string{"1", "a"}}} {
				_ = o.expected(value)
			}
		}
		number, integer, float := Option{Min: limit(-5), Max: limit(5)}, Option{Type: "integer value"}, Option{Type: "floating point value"}
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			if integer.expected(value) != "" || float.expected(value) != "" {
				t.Errorf("%q is a number", value)
			}
			if inside := n >= -5 && n <= 5; inside != (number.integer(value) == "") {
				t.Errorf("%q is in the range: %t", value, inside)
			}
		}
		if n, err := strconv.ParseFloat(value, 64); err == nil && !strings.ContainsAny(value, "xX_") && float.expected(value) != "" {
			t.Errorf("%q is a number", value)
		} else if err == nil && !strings.ContainsAny(value, "xX_") && !math.IsNaN(n) && (n >= -5 && n <= 5) != (number.float(value) == "") {
			t.Errorf("%q is in the range: %t", value, n >= -5 && n <= 5)
		}
	})
}
