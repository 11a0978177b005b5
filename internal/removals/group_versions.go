package removals

import (
	_ "embed"
	"strconv"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
)

//go:embed group_versions.txt
var table string

// span is the minor versions of Kubernetes 1 that have a group version.
type span struct{ first, last uint64 }

// oldest and newest are the minor versions that the table has; others are unknown.
var groupVersions, oldest, newest = parse(table)

func parse(table string) (parsed map[string]span, oldest, newest uint64) {
	parsed = map[string]span{}

	for line := range strings.Lines(table) {
		words := strings.Fields(line)
		if words[0] == "#" {
			continue
		}

		first, _ := strconv.ParseUint(words[1], 10, 64)
		last, _ := strconv.ParseUint(words[2], 10, 64)
		parsed[words[0]] = span{first, last}
		newest = max(newest, last)
	}

	oldest = parsed["/v1"].first

	return parsed, oldest, newest
}

// GroupVersions are those that an upgrade to Kubernetes 1.<minor> removes.
func GroupVersions(minor uint64) []string {
	var removed []string

	for name, has := range groupVersions {
		if has.last+1 == minor && has.last < newest {
			removed = append(removed, name)
		}
	}

	return removed
}

// runtimeConfig is the flag of kube-apiserver that switches APIs on and off.
const runtimeConfig = "--runtime-config="

// unregistered are the group versions in the arguments of a kube-apiserver that Kubernetes 1.<minor> does not register,
// and with which it does not start (k8s.io/apiserver 0.36, pkg/server/resourceconfig/helpers.go
// applyVersionAndResourcePreferences, and pkg/server/options/api_enablement.go for unknown groups).
func unregistered(arguments []string, minor uint64) []Setting {
	if minor < oldest || minor > newest {
		return nil
	}

	var found []Setting

	for _, argument := range arguments {
		value, is := strings.CutPrefix(argument, runtimeConfig)
		if !is {
			continue
		}

		for _, part := range strings.Split(value, ",") {
			key, _, _ := strings.Cut(strings.TrimSpace(part), "=")
			words := strings.Split(key, "/")

			// api/all, api/ga, api/beta and api/alpha stand for many, and kube-apiserver itself reports other forms.
			if len(words) < 2 || words[0] == "api" {
				continue
			}

			name := words[0] + "/" + words[1]
			if has := groupVersions[name]; minor < has.first || minor > has.last {
				found = append(found, Setting{"API version", name, kubenames.KubeAPIServer, has.first, has.last})
			}
		}
	}

	return found
}
