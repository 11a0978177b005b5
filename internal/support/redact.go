package support

import (
	"bytes"
	"encoding/base64"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

// hidden replaces what a bundle must not contain.
const hidden = machineconfig.Sensitive

// shortestSecret excludes short words, which occur in many texts.
const shortestSecret = 8

// redactor removes known and likely secrets from texts.
type redactor struct{ known *strings.Replacer }

// newRedactor knows secrets in each form that they are written in.
func newRedactor(secrets []string) redactor {
	var forms []string
	for _, secret := range secrets {
		forms = append(forms, formsOf(secret)...)
	}

	// The longest first, for one may be part of another.
	slices.SortFunc(forms, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}

		return strings.Compare(a, b)
	})

	var pairs []string
	for _, form := range slices.Compact(forms) {
		pairs = append(pairs, form, hidden)
	}

	return redactor{strings.NewReplacer(pairs...)}
}

// bootstrapToken is one of Kubernetes.
var bootstrapToken = regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`)

// encodedLine is a line of encoded data only, such as in a key.
var encodedLine = regexp.MustCompile(`^[A-Za-z0-9+/=_.-]{24,}$`)

// isBinary reports whether a text is no text, such as a key that is all random bytes: those may be line breaks, too.
func isBinary(text string) bool {
	return !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsControl(r) && !unicode.IsSpace(r)
	})
}

// formsOf are a secret as it is, in Base64, what it is in Base64 of, and the lines of keys, which YAML indents.
func formsOf(secret string) []string {
	if len(strings.TrimSpace(secret)) < shortestSecret {
		return nil
	}

	texts := []string{secret}

	// Manifests have the halves of a bootstrap token by themselves.
	if _, half, is := strings.Cut(secret, "."); is && bootstrapToken.MatchString(secret) {
		texts = append(texts, half)
	}

	decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(secret))
	if err == nil && len(decoded) >= shortestSecret {
		texts = append(texts, string(decoded))
	}

	var forms []string

	for _, text := range texts {
		plain := strings.TrimSpace(text)
		forms = append(forms, plain, base64.StdEncoding.EncodeToString([]byte(plain)),
			base64.StdEncoding.EncodeToString([]byte(text)))

		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if encodedLine.MatchString(line) || isBinary(text) && len(line) >= shortestSecret {
				forms = append(forms, line)
			}
		}
	}

	return forms
}

// patterns are the forms of possible secrets, with the part that stays.
var patterns = []struct {
	look *regexp.Regexp
	left string
}{
	{regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----[\s\S]*?(-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)`), hidden},
	{regexp.MustCompile(`\bAGE-SECRET-KEY-1[A-Z0-9]+`), hidden},
	{bootstrapToken, hidden},
	// A JSON Web Token.
	{regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+`), hidden},
	{regexp.MustCompile(`(?i)\b(bearer|basic) [A-Za-z0-9+/=._~-]{8,}`), "${1} " + hidden},
	{regexp.MustCompile(`://[^/\s@"']+@`), "://" + hidden + "@"},
	// Arguments of the kernel: where Talos fetches a configuration, or has it, and joins SideroLink with a token.
	{regexp.MustCompile(`\b(talos\.config[a-z._]*|siderolink\.api)=[^\s"']+`), "${1}=" + hidden},
}

// named is a value whose name marks it as secret.
var named = regexp.MustCompile(
	`(?i)([\w.-]*(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?))` +
		`(["']?\s*[:=]\s*["']?)([^\s"',;&}]{6,})`)

// encodedPEM matches what may be a PEM key in Base64.
var encodedPEM = regexp.MustCompile(`LS0tLS1CRUdJTi[A-Za-z0-9+/]+=*`)

// redact takes secrets out of a text.
func (r redactor) redact(content []byte) []byte {
	text := r.known.Replace(string(content))

	text = encodedPEM.ReplaceAllStringFunc(text, func(found string) string {
		decoded, _ := base64.StdEncoding.DecodeString(found) // what can be decoded of it
		if bytes.Contains(decoded, []byte("PRIVATE KEY")) {
			return hidden
		}

		return found
	})

	for _, p := range patterns {
		text = p.look.ReplaceAllString(text, p.left)
	}

	text = named.ReplaceAllStringFunc(text, func(found string) string {
		parts := named.FindStringSubmatch(found)
		if strings.HasPrefix(parts[3], "/") || strings.HasPrefix(parts[3], hidden[:6]) {
			return found // a path of a file, or hidden already
		}

		return parts[1] + parts[2] + hidden
	})

	return []byte(text)
}

// secretsIn are the values of a configuration that its redacted form does not show.
func secretsIn(configuration []byte, redacted string) []string {
	whole, shown := yaml.NewDecoder(bytes.NewReader(configuration)), yaml.NewDecoder(strings.NewReader(redacted))

	var secrets []string

	for {
		var a, b yaml.Node
		if whole.Decode(&a) != nil || shown.Decode(&b) != nil {
			return secrets // the end, since the redacted form could be made
		}

		collect(&a, &b, &secrets)
	}
}

func collect(whole, shown *yaml.Node, secrets *[]string) {
	if whole.Kind == yaml.AliasNode {
		whole = whole.Alias
	}

	if whole.Kind == yaml.ScalarNode {
		if shown.Value == hidden {
			*secrets = append(*secrets, whole.Value)
		}

		return
	}

	for i := range min(len(whole.Content), len(shown.Content)) {
		collect(whole.Content[i], shown.Content[i], secrets)
	}
}
