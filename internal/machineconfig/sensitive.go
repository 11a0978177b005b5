package machineconfig

import (
	"slices"
	"strings"
)

// Parts of configurations whose values carry secrets without Talos treating them as such (machinery 1.13,
// RedactSecrets leaves them in clear text).
var (
	secretTrees = []FieldPath{
		{"cluster", "extraManifestHeaders"}, {"machine", "kubelet", "credentialProviderConfig"}, {"environment"},
		{"variables"},
	}
	secretListFields = []struct {
		list  FieldPath
		field string
	}{
		{FieldPath{"machine", "files"}, "content"}, {FieldPath{"cluster", "inlineManifests"}, "contents"},
		{FieldPath{"configFiles"}, "content"},
	}
	secretWords = []string{"password", "passphrase", "secret", "token"}
)

// oftenSecret says whether the value at a path often is a secret.
func oftenSecret(path FieldPath) bool {
	if len(path) == 0 {
		return false
	}

	for _, tree := range secretTrees {
		if path.startsWith(tree...) {
			return true
		}
	}

	for _, secret := range secretListFields {
		if path.startsWith(secret.list...) && len(path) == len(secret.list)+2 && path[len(path)-1] == secret.field {
			return true
		}
	}

	last, _ := path[len(path)-1].(string)

	return slices.Contains(path, any("env")) ||
		slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(strings.ToLower(last), word) })
}
