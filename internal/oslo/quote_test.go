package oslo

import "testing"

func TestWhatIsQuotedIsReadBackAsItWas(t *testing.T) {
	for _, value := range []string{
		"plain", "with space", " spaces at the ends ", `"quoted"`, "'quoted'", "semi;colon", "#hash", "a=b:c", "100%", "%(x)s", "",
	} {
		text, err := Quote(value)
		if err != nil {
			t.Fatal(err)
		}
		config, err := Parse("[s]\nk = " + text + "\n")
		if err != nil {
			t.Fatalf("%q: %v", value, err)
		}
		if got := config.Get("s", "k"); len(got) != 1 || got[0] != value {
			t.Errorf("%q is read back as %q", value, got)
		}
	}
}

func TestADollarStartsNoSubstitution(t *testing.T) {
	if got, _ := Quote("a$b${c}"); got != "a$$b$${c}" {
		t.Errorf("got %q; oslo.config reads $$ as $", got)
	}
}

func TestALineBreakIsRefused(t *testing.T) {
	for _, value := range []string{"a\nb", "a\rb", "a\x00b"} {
		if got, err := Quote(value); err == nil {
			t.Errorf("%q is written as %q: what follows the break would be configuration", value, got)
		}
	}
}
