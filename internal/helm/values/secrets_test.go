package values_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/helm/values"
)

func TestRedact_forms(t *testing.T) {
	t.Parallel()

	const password = `p"ss\w<rd 'ü/+?&` + "\t1"

	quoted, err := json.Marshal(password)
	if err != nil {
		t.Fatal(err)
	}

	secrets := values.Secrets{"hunter2", "hunter2-and-more", password, "line one\nshort\n  line number three\n", "on",
		"true", "123", "4711"}

	for name, test := range map[string]struct{ text, want string }{
		"plain":       {"the password is hunter2.", "the password is (sensitive)."},
		"longest":     {"hunter2-and-more", "(sensitive)"},
		"twice":       {"hunter2 hunter2", "(sensitive) (sensitive)"},
		"overlap":     {"xhunter24711x", "x(sensitive)x"},
		"at the edge": {"hunter2hunter2", "(sensitive)"},
		"JSON":        {`{"a":` + string(quoted) + `}`, `{"a":"(sensitive)"}`},
		"Go":          {fmt.Sprintf("invalid value %q", password), `invalid value "(sensitive)"`},
		"JSON in Go":  {fmt.Sprintf("%q", `{"a":`+string(quoted)+`}`), `"{\"a\":\"(sensitive)\"}"`},
		"YAML":        {"a: '" + strings.ReplaceAll(password, "'", "''") + "'", "a: '(sensitive)'"},
		"base64":      {"x " + base64.StdEncoding.EncodeToString([]byte(password)), "x (sensitive)"},
		"raw base64":  {"x " + base64.RawStdEncoding.EncodeToString([]byte("hunter2")), "x (sensitive)"},
		"query":       {"https://x/?a=" + url.QueryEscape(password), "https://x/?a=(sensitive)"},
		"path":        {"https://x/" + url.PathEscape(password), "https://x/(sensitive)"},
		"user": {(&url.URL{Scheme: "https", User: url.UserPassword("me", password), Host: "x"}).String(),
			"https://me:(sensitive)@x"},
		"lines":     {"line one\n    line number three\n  short", "(sensitive)\n    (sensitive)\n  short"},
		"all lines": {"line one\nshort\n  line number three\n", "(sensitive)"},
		"one line":  {`"line one\nshort\n  line number three"`, `"(sensitive)"`},
		"trivial":   {"on: true, 1234, 123", "on: true, 1234, 123"},
		"pin":       {"4711", "(sensitive)"},
		"nothing":   {"", ""},
	} {
		if got := secrets.Redact(test.text); got != test.want {
			t.Errorf("%s: %q is shown as %q, want %q", name, test.text, got, test.want)
		}
	}
}

// TestRedact_insideBase64 is about texts with a secret in them that are encoded as a whole, as
// credentials of registries are.
func TestRedact_insideBase64(t *testing.T) {
	t.Parallel()

	for _, secret := range []string{"swordfish", "?>swordfish~?>", "swordfish\nswordfish\n"} {
		for name, encoding := range map[string]*base64.Encoding{
			"std": base64.StdEncoding, "raw": base64.RawStdEncoding, "URL": base64.URLEncoding, "raw URL": base64.RawURLEncoding,
		} {
			for before := range "user:" {
				for after := range "@host" {
					text := encoding.EncodeToString([]byte("user:"[:before] + secret + "@host"[:after]))
					shown := strings.ReplaceAll(values.Secrets{secret}.Redact("x"+text+"x"), "(sensitive)", "")

					// What is around the secret, with at most 4 bits of it at either end.
					if most := 2 + (before*8+4)/6 + 1 + (after*8+4)/6 + 1 + len("=="); len(shown) > most || shown[0] != 'x' {
						t.Errorf("%s, %q after %d before %d: %s", name, secret, before, after, shown)
					}
				}
			}
		}
	}

	// Too short to be distinguished.
	if text := base64.StdEncoding.EncodeToString([]byte("a1234567b")); (values.Secrets{"1234567"}).Redact(text) != text {
		t.Error("a short secret hides other texts")
	}
}

func TestRedact_withoutSecrets(t *testing.T) {
	t.Parallel()

	for _, secrets := range []values.Secrets{nil, {}, {""}, {"", "a"}} {
		if got := secrets.Redact("a text"); got != "a text" {
			t.Errorf("%q", got)
		}
	}
}

func TestSecrets_areNotPrinted(t *testing.T) {
	t.Parallel()

	secrets := values.Secrets{"hunter2"}
	holder := struct{ Secrets values.Secrets }{secrets}

	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, value := range []any{secrets, &secrets, holder, map[string]any{"a": secrets}} {
			if got := fmt.Sprintf(verb, value); strings.Contains(got, "hunter2") || strings.Contains(got, "68756e74657232") {
				t.Errorf("%s prints %s", verb, got)
			}
		}
	}

	if got, err := json.Marshal(holder); err != nil || strings.Contains(string(got), "hunter2") {
		t.Errorf("%s, %v", got, err)
	}
}

// TestRedact_leavesNoPart tries secrets that overlap at every offset.
func TestRedact_leavesNoPart(t *testing.T) {
	t.Parallel()

	const text = "abcdefghijkl"

	for i := range text {
		for j := i + 4; j <= len(text); j++ {
			for k := range text {
				for l := k + 4; l <= len(text); l++ {
					got := values.Secrets{text[i:j], text[k:l]}.Redact(text)

					for at := range text {
						hidden := at >= i && at < j || at >= k && at < l
						if shown := strings.Contains(strings.ReplaceAll(got, "(sensitive)", ""), text[at:at+1]); shown == hidden {
							t.Fatalf("%s and %s of %s: %s", text[i:j], text[k:l], text, got)
						}
					}
				}
			}
		}
	}
}
