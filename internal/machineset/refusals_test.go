package machineset

import (
	"os"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
)

// The former key for Secrets of Kubernetes may come and go, with a warning. The key that encrypts stays.
func TestRefuseNewSecrets_ofEncryptionKeys(t *testing.T) {
	t.Parallel()

	file, err := os.ReadFile("../pki/testdata/test-only-secrets.yaml")
	if err != nil {
		t.Fatal(err)
	}

	head, tail, _ := strings.Cut(string(file), "    secretboxencryptionsecret: ")
	secret, rest, _ := strings.Cut(tail, "\n")
	bundle := func(lines ...string) string { return head + strings.Join(lines, "") + rest }
	secretbox, aescbc := "    secretboxencryptionsecret: "+secret+"\n", "    aescbcencryptionsecret: Zm9ybWVy\n"
	other := strings.Replace(aescbc, "Zm9ybWVy", "b3RoZXI=", 1)

	for name, test := range map[string]struct {
		was, is string
		want    string
	}{
		"both stay":              {bundle(secretbox, aescbc), bundle(aescbc, secretbox), ""},
		"the former one goes":    {bundle(secretbox, aescbc), bundle(secretbox), "A key for Secrets will be removed"},
		"the former one changes": {bundle(secretbox, aescbc), bundle(secretbox, other), "A key for Secrets will be removed"},
		"a former one comes":     {bundle(secretbox), bundle(secretbox, aescbc), ""},
		"the present one goes":   {bundle(secretbox, aescbc), bundle(aescbc), "Unsupported change of secrets"},
		"another present one":    {bundle(aescbc), bundle(secretbox), "Unsupported change of secrets"},
		"another token": {bundle(secretbox, aescbc), strings.Replace(bundle(secretbox), "token: 1ibwy8", "token: 1ibwy9", 1),
			"Unsupported change of secrets"},
	} {
		p, prior := listing(nil), listing(nil)
		p.Secrets, prior.Secrets = test.is, test.was

		var got finding.Finding
		if found := p.RefuseNewSecrets(prior, Record{}); len(found) > 0 {
			got = found[0]
		}

		if got.Summary != test.want || (got.Severity == finding.Error) != strings.HasPrefix(test.want, "Unsupported") {
			t.Errorf("%s: %+v, want %q", name, got, test.want)
		}
	}
}
