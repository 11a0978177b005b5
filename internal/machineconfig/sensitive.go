package machineconfig

import (
	"slices"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/fieldpath"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/places"
)

var secretWords = []string{"password", "passphrase", "secret", "token"}

// oftenSecret says whether the value at a path of a document often is a secret.
func oftenSecret(kind string, path fieldpath.Path) bool {
	if len(path) == 0 {
		return false
	}

	last, named := path[len(path)-1].(string)
	if !named && len(path) > 1 {
		last, _ = path[len(path)-2].(string) // of an element the list
	}

	return slices.Contains(path, any("env")) || namesSecret(last) || places.Secret(kind, path)
}

// namesSecret says whether a name is one that secrets often have.
func namesSecret(name string) bool {
	name = strings.ToLower(name)

	return slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(name, word) })
}
