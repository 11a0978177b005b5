package kubetest

import "strings"

// Trouble is a problem that an upgrade runs into, as objects of a cluster.
type Trouble struct {
	Name string
	// Manifest has EXPIRED in place of an expired certificate in base64.
	Manifest string
	// Code and Object are what the checks of an upgrade report.
	Code, Object string
}

// Before is the manifest of an earlier time. Objects of the definition were stored in its first version then.
func (t Trouble) Before() string {
	return strings.NewReplacer("storage: false", "storage: true", "storage: true", "storage: false").Replace(t.Manifest)
}

// Troubles are one of each kind that objects of any cluster have.
func Troubles() []Trouble { //nolint:funlen // a list
	return []Trouble{
		{"broken admission webhook", `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: guard}
webhooks:
  - name: guard.example.com
    sideEffects: None
    admissionReviewVersions: [v1]
    clientConfig: {service: {name: gone, namespace: default}}
    rules: [{apiGroups: [networking.k8s.io], apiVersions: [v1], operations: [CREATE], resources: [ingresses]}]
`, "webhook_unavailable", "ValidatingWebhookConfiguration guard, webhook guard.example.com"},
		{"budget that never allows an eviction", `
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: single, namespace: default}
spec: {minAvailable: 1, selector: {matchLabels: {app: single}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: single, namespace: default}
spec:
  selector: {matchLabels: {app: single}}
  template:
    metadata: {labels: {app: single}}
    spec: {containers: [{name: web, image: "registry.test/web:v1"}]}
`, "eviction_blocked", "PodDisruptionBudget default/single"},
		{"missing image", `
apiVersion: v1
kind: Pod
metadata: {name: unpulled, namespace: default, annotations: {kubetest/missing-image: "true"}}
spec: {containers: [{name: web, image: "registry.test/gone:v1"}]}
`, "pod_not_ready", "Pod default/unpulled"},
		{"definition without conversion", `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lossies.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {plural: lossies, kind: Lossy}
  versions:
    - {name: v1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {
        spec: {type: object, properties: {old: {type: string}, same: {type: string}}}}}}}
    - {name: v2, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {
        spec: {type: object, properties: {same: {type: string}}}}}}}
`, "conversion_missing", "CustomResourceDefinition lossies.example.com"},
		{"missing extension", `
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: sandboxed}
handler: runsc
`, "extension_missing", "RuntimeClass sandboxed"},
		{"expired certificate", `
apiVersion: v1
kind: Secret
metadata: {name: expired, namespace: default}
type: kubernetes.io/tls
data: {tls.crt: EXPIRED, tls.key: ""}
`, "certificate_expired", "Secret default/expired"},
	}
}
