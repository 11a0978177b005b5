package preflight

import (
	"cmp"
	"slices"
	"strings"
)

// Finding is a fact about a host that prevents machines there, or that is useful to know before.
type Finding struct {
	// Warning is true for a finding that may be harmless.
	Warning bool
	// Pending marks an obstacle that may disappear before the machines are made. Another resource of the same
	// apply may make a namespace or a class, or objects to be replaced may be removed. A plan must not fail for
	// it.
	Pending bool
	// Attribute that it is about, as a path below host: "namespace", "pod.storage.class"; pod_cidrs and service_cidrs are
	// beside it. Empty for the host as a whole, which is about the connection.
	Attribute string
	// Found says what is the matter, and Help what to do; sentences for people.
	Found, Help string
}

// The attributes that findings are about.
const (
	attributeCreate       = "create_namespace"
	attributeNamespace    = "namespace"
	attributeAccess       = "access"
	attributeService      = "service"
	attributePullSecrets  = "image_pull_secrets"
	attributePod          = "pod"
	attributeResources    = "pod.resources"
	attributeStorage      = "pod.storage"
	attributeClass        = "pod.storage.class"
	attributePriority     = "pod.priority_class"
	attributePodCIDRs     = "pod_cidrs"
	attributeServiceCIDRs = "service_cidrs"
)

// String is the finding on one line.
func (f Finding) String() string {
	text := f.Found + " " + f.Help
	if f.Attribute != "" {
		text = f.Attribute + ": " + text
	}

	return text
}

// weight orders findings: certain obstacles, present obstacles, and harmless ones.
func (f Finding) weight() int {
	switch {
	case f.Warning:
		return 2
	case f.Pending:
		return 1
	default:
		return 0
	}
}

// arranged sorts obstacles first, and removes duplicates.
func arranged(findings []Finding) []Finding {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.weight(), b.weight()), strings.Compare(a.Attribute, b.Attribute),
			strings.Compare(a.Found, b.Found))
	})

	return slices.Compact(findings)
}
