package machineconfig

import (
	"slices"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/fieldpath"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/places"
)

var secretWords = []string{"password", "passphrase", "secret", "token"}

// oftenSecret reports whether the value at a path of a document often is a secret.
func oftenSecret(kind string, path fieldpath.Path) bool {
	if len(path) == 0 {
		return false
	}

	last, named := path[len(path)-1].(string)
	if !named && len(path) > 1 {
		last, _ = path[len(path)-2].(string) // of an element the list
	}

	return slices.ContainsFunc(path, ofEnvironment) || namesSecret(last) || places.Secret(kind, path)
}

// ofEnvironment says whether a key is one below which programs are given variables, in documents of kinds that no row
// of the table names, too.
func ofEnvironment(key any) bool { return key == "env" || key == "environment" || key == "variables" }

// namesSecret reports whether a name suggests a secret.
func namesSecret(name string) bool {
	name = strings.ToLower(name)

	return slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(name, word) })
}
