package support

import (
	"encoding/base64"
	"strings"
	"testing"
)

func TestRedact_whatLooksSecret(t *testing.T) {
	t.Parallel()

	key := "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIKMRWrbGgTgS\n-----END EC PRIVATE KEY-----"
	encoded := base64.StdEncoding.EncodeToString([]byte(key))

	for text, want := range map[string]string{
		"key:\n" + key + "\nend":                "key:\n(sensitive value)\nend",
		"cut -----BEGIN PRIVATE KEY-----\nMHcC": "cut (sensitive value)",
		"data: " + encoded:                      "data: (sensitive value)",
		"joined with abcdef.0123456789abcdef":   "joined with (sensitive value)",
		"Authorization: Bearer abcdefgh12345":   "Authorization: Bearer (sensitive value)",
		"pull https://me:pass@registry.test/v2": "pull https://(sensitive value)@registry.test/v2",
		"a talos.config=https://x/y?uuid=z b":   "a talos.config=(sensitive value) b",
		"siderolink.api=grpc://x?jointoken=yyy": "siderolink.api=(sensitive value)",
		`{"password":"hunter2hunter2"}`:         `{"password":"(sensitive value)"}`,
		"--admin-token=abcdefghij":              "--admin-token=(sensitive value)",
		"--token-auth-file=/etc/tokens.csv":     "--token-auth-file=/etc/tokens.csv",
		"--service-account-key-file=/x/y.pub":   "--service-account-key-file=/x/y.pub",
		"secretName: cilium-clustermesh":        "secretName: cilium-clustermesh",
		"AGE-SECRET-KEY-1QQQQQQQQ":              "(sensitive value)",
		"a certificate LS0tLS1CRUdJTiBDRVJUSUZ": "a certificate LS0tLS1CRUdJTiBDRVJUSUZ",
	} {
		if got := string(newRedactor(nil).redact([]byte(text))); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

// What is known to be secret is found as it is, in Base64, decoded, and by the indented lines of a key.
func TestRedact_whatIsKnownInEachForm(t *testing.T) {
	t.Parallel()

	line := "MHcCAQEEIKMRWrbGgTgSoZBtaPYGqGiN1hXPkXkD1Kq1QeYrbnVxoAoGCCqGSM49"
	key := "-----BEGIN THING-----\n" + line + "\n-----END THING-----\n"
	r := newRedactor([]string{base64.StdEncoding.EncodeToString([]byte(key)), "abcdef.0123456789abcdef", "short", "word of 12ch"})

	text := strings.Join([]string{base64.StdEncoding.EncodeToString([]byte(strings.TrimSpace(key))), "  " + line,
		"id 0123456789abcdef", "a word of 12ch", "a short one"}, "\n")

	want := "(sensitive value)\n  (sensitive value)\nid (sensitive value)\na (sensitive value)\na short one"
	if got := string(r.redact([]byte(text))); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A key of random bytes may have a line break in it: each of its lines is as secret as the whole.
func TestRedact_linesOfRandomBytes(t *testing.T) {
	t.Parallel()

	r := newRedactor([]string{base64.StdEncoding.EncodeToString([]byte("\x01\xf0first half\nsecond half\xff"))})

	if got := string(r.redact([]byte("said second half\xff and \x01\xf0first half"))); got !=
		"said (sensitive value) and (sensitive value)" {
		t.Errorf("got %q", got)
	}
}

func TestSecretsIn_areTheValuesThatAreNotShown(t *testing.T) {
	t.Parallel()

	got := secretsIn([]byte("a: &x one\nb: [two, three]\nc: *x\n---\nd: four\n"),
		"a: one\nb: [two, "+hidden+"]\nc: "+hidden+"\n---\nd: "+hidden+"\n")
	if want := "three one four"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
