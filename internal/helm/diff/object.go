// Package diff reads what Helm rendered into objects, and compares them. It does no I/O.
package diff

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Object is one object of a manifest.
type Object struct {
	APIVersion, Kind string
	// Namespace is that of the object, or of the release where the object names none. It is empty for
	// kinds that are known to have none; kinds that charts define are taken for having one.
	Namespace, Name string
	// Kept is whether the object stays when its release no longer has it
	// (annotation helm.sh/resource-policy: keep).
	Kept    bool
	Content map[string]any
}

// String returns a text such as "Deployment kube-system/metrics-server".
func (o Object) String() string {
	name := o.Name

	if name == "" {
		name = (&unstructured.Unstructured{Object: o.Content}).GetGenerateName() + "*"
	}

	if o.Namespace == "" {
		return o.Kind + " " + name
	}

	return o.Kind + " " + o.Namespace + "/" + name
}

// Key distinguishes objects. The version of the API is no part of it: the same object is served in all
// versions of its group.
type Key struct{ Group, Kind, Namespace, Name string }

// Key of the object.
func (o Object) Key() Key {
	group, _, found := strings.Cut(o.APIVersion, "/")
	if !found {
		group = ""
	}

	return Key{Group: group, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
}

// object reads what an object says about itself.
func object(content map[string]any, namespace string) Object {
	read := unstructured.Unstructured{Object: content}
	made := Object{
		APIVersion: read.GetAPIVersion(), Kind: read.GetKind(), Namespace: read.GetNamespace(), Name: read.GetName(),
		Content: content,
		// Helm compares the value in lower case (v3.21, pkg/action/resource_policy.go, filterManifestsToKeep)
		Kept: strings.EqualFold(strings.TrimSpace(read.GetAnnotations()[policyAnnotation]), "keep"),
	}

	switch key := made.Key(); {
	case clusterWide[key.Group+"/"+key.Kind]:
		made.Namespace = ""
	case made.Namespace == "":
		made.Namespace = namespace
	}

	return made
}

const policyAnnotation = "helm.sh/resource-policy"

// clusterWide are the kinds of Kubernetes 1.36 that have no namespace, by group and kind, and those that
// many charts bring objects of.
var clusterWide = map[string]bool{
	"/Namespace":        true,
	"/Node":             true,
	"/PersistentVolume": true,
	"admissionregistration.k8s.io/MutatingAdmissionPolicy":          true,
	"admissionregistration.k8s.io/MutatingAdmissionPolicyBinding":   true,
	"admissionregistration.k8s.io/MutatingWebhookConfiguration":     true,
	"admissionregistration.k8s.io/ValidatingAdmissionPolicy":        true,
	"admissionregistration.k8s.io/ValidatingAdmissionPolicyBinding": true,
	"admissionregistration.k8s.io/ValidatingWebhookConfiguration":   true,
	"apiextensions.k8s.io/CustomResourceDefinition":                 true,
	"apiregistration.k8s.io/APIService":                             true,
	"certificates.k8s.io/CertificateSigningRequest":                 true,
	"certificates.k8s.io/ClusterTrustBundle":                        true,
	"flowcontrol.apiserver.k8s.io/FlowSchema":                       true,
	"flowcontrol.apiserver.k8s.io/PriorityLevelConfiguration":       true,
	"networking.k8s.io/IngressClass":                                true,
	"networking.k8s.io/IPAddress":                                   true,
	"networking.k8s.io/ServiceCIDR":                                 true,
	"node.k8s.io/RuntimeClass":                                      true,
	"rbac.authorization.k8s.io/ClusterRole":                         true,
	"rbac.authorization.k8s.io/ClusterRoleBinding":                  true,
	"resource.k8s.io/DeviceClass":                                   true,
	"resource.k8s.io/ResourceSlice":                                 true,
	"scheduling.k8s.io/PriorityClass":                               true,
	"storage.k8s.io/CSIDriver":                                      true,
	"storage.k8s.io/CSINode":                                        true,
	"storage.k8s.io/StorageClass":                                   true,
	"storage.k8s.io/VolumeAttachment":                               true,
	"storage.k8s.io/VolumeAttributesClass":                          true,
	"cert-manager.io/ClusterIssuer":                                 true,
	"gateway.networking.k8s.io/GatewayClass":                        true,
	"snapshot.storage.k8s.io/VolumeSnapshotClass":                   true,
}
