package objects

import "strings"

// places are where Kubernetes keeps objects below its prefix whose keys clients of snapshots know: without the group,
// and some under another name (Kubernetes 1.36, pkg/registry/core/rest and
// kubeapiserver/default_storage_factory_builder.go). All other objects are kept under the store's own keys.
var places = []struct {
	prefix, group, resource string
	namespaced              bool
}{
	{"minions/", "", "nodes", false},
	{"configmaps/", "", "configmaps", true},
	{"services/endpoints/", "", "endpoints", true},
	{"endpointslices/", "discovery.k8s.io", "endpointslices", true},
	{"leases/", "coordination.k8s.io", "leases", true},
}

// storageKey is the key of an object in etcd, below the prefix, for its key in the store.
func storageKey(key string) string {
	for _, place := range places {
		rest, found := strings.CutPrefix(key, place.group+"/"+place.resource+"/")
		if found && place.namespaced {
			return place.prefix + rest
		}

		if found {
			return place.prefix + strings.TrimPrefix(rest, "/")
		}
	}

	return key
}

// storeKey undoes storageKey.
func storeKey(key string) string {
	for _, place := range places {
		rest, found := strings.CutPrefix(key, place.prefix)
		if found && place.namespaced {
			return place.group + "/" + place.resource + "/" + rest
		}

		if found {
			return place.group + "/" + place.resource + "//" + rest
		}
	}

	return key
}
