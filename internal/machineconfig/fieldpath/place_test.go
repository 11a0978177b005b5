package fieldpath

import (
	"encoding/json"
	"testing"
)

func TestPlace_textIsReadBack(t *testing.T) {
	for _, test := range []struct {
		place Place
		text  string
	}{
		{Place{Document: "v1alpha1"}, "v1alpha1"},
		{Place{"v1alpha1", Path{"machine", "certSANs", 12}}, "v1alpha1 machine.certSANs[12]"},
		{Place{"v1alpha1", Path{"machine", "sysctls", "net.ipv4.ip_forward"}},
			`v1alpha1 machine.sysctls["net.ipv4.ip_forward"]`},
		{Place{"v1alpha1", Path{"a.b", "c"}}, `v1alpha1 ["a.b"].c`},
		{Place{"v1alpha1", Path{"a", "0", 0, "[0]", ""}}, `v1alpha1 a.0[0]["[0]"][""]`},
		{Place{"v1alpha1", Path{`say "x"]`, "two\nlines", `back\slash`}},
			`v1alpha1 ["say \"x\"]"]["two\nlines"]["back\\slash"]`},
		{Place{"RegistryAuthConfig/r.example.com:5000", Path{"username"}},
			"RegistryAuthConfig/r.example.com:5000 username"},
		{Place{"Kind/two words", Path{"x"}}, `"Kind/two words" x`},
		{Place{Document: "Kind/two words"}, `"Kind/two words"`},
	} {
		if got := test.place.String(); got != test.text {
			t.Errorf("%#v is %s, want %s", test.place, got, test.text)
		}

		if got, err := ParsePlace(test.text); err != nil || !got.Equal(test.place) {
			t.Errorf("%s is read as %#v (%v)", test.text, got, err)
		}

		encoded, err := json.Marshal(test.place)
		if err != nil {
			t.Fatal(err)
		}

		var decoded Place
		if err := json.Unmarshal(encoded, &decoded); err != nil || !decoded.Equal(test.place) {
			t.Errorf("%s is decoded as %#v (%v)", encoded, decoded, err)
		}
	}
}

func TestParsePlace_refusesWhatIsNone(t *testing.T) {
	for _, text := range []string{"", " a", "v1alpha1 a b", "v1alpha1 a..b", "v1alpha1 a[", "v1alpha1 a[x]",
		`v1alpha1 a["b]`, "v1alpha1 a]", `"v1alpha1`, "v1alpha1 a[0]b"} {
		if place, err := ParsePlace(text); err == nil {
			t.Errorf("%q is read as %#v", text, place)
		}
	}
}

func FuzzParsePlace(f *testing.F) {
	f.Add("v1alpha1", "machine", "net.ipv4.ip_forward", 3)
	f.Add("Kind/a b", "", "\xff\"]", -1)

	f.Fuzz(func(t *testing.T, document, first, second string, index int) {
		place := Place{document, Path{first, index, second}}

		if got, err := ParsePlace(place.String()); document != "" && (err != nil || !got.Equal(place)) {
			t.Errorf("%#v is %s and read back as %#v (%v)", place, place, got, err)
		}
	})
}
