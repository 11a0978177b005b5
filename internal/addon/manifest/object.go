// Package manifest reads what Helm rendered into objects, and compares them. It does no I/O.
package manifest

// Object is one object of a manifest.
type Object struct {
	APIVersion, Kind string
	// Namespace is that of the object, or of the release where the object names none.
	Namespace, Name string
	// Kept is whether the object stays when its release no longer has it
	// (annotation helm.sh/resource-policy: keep).
	Kept    bool
	Content map[string]any
}

// String is such as "Deployment kube-system/metrics-server".
func (o Object) String() string { return o.Kind + " " + o.Namespace + "/" + o.Name }
