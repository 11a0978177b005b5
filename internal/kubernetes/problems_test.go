package kubernetes_test

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/upgrade"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
)

// obstructing are more objects that block or break any change, and beside each one of the same kind that does not.
const obstructing = `
apiVersion: v1
kind: Service
metadata: {name: asleep, namespace: default}
spec: {ports: [{port: 443}]}
---
apiVersion: v1
kind: Service
metadata: {name: awake, namespace: default}
spec: {ports: [{port: 443}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: awake-1, namespace: default, labels: {kubernetes.io/service-name: awake}}
addressType: IPv4
endpoints: [{addresses: [10.244.0.9], conditions: {ready: true}}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: once, namespace: default}
spec: {minAvailable: 1, selector: {matchLabels: {app: once}}}
status: {expectedPods: 2, desiredHealthy: 1, currentHealthy: 1, disruptionsAllowed: 0}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: unmoveds.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {plural: unmoveds, kind: Unmoved}
  versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
  conversion:
    strategy: Webhook
    webhook: {conversionReviewVersions: [v1], clientConfig: {service: {name: gone, namespace: default}}}
---
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: driver.longhorn.io}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.stale.example.com}
spec: {group: stale.example.com, version: v1, groupPriorityMinimum: 10, versionPriority: 10,
  insecureSkipTLSVerify: true, service: {name: gone, namespace: default}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: more}
webhooks:
  - {name: expired.example.com, clientConfig: {caBundle: EXPIRED, service: {name: awake, namespace: default}}, RULES}
  - {name: asleep.example.com, clientConfig: {service: {name: asleep, namespace: default}}, RULES}
  - {name: awake.example.com, clientConfig: {service: {name: awake, namespace: default}}, RULES}
  - {name: ignored.example.com, failurePolicy: Ignore, clientConfig: {service: {name: gone, namespace: default}}, RULES}
  - {name: pods.example.com, clientConfig: {service: {name: gone, namespace: default}},
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: default}}, PODS}
  - {name: system.example.com, clientConfig: {service: {name: gone, namespace: default}},
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: kube-system}}, PODS}
`

// webhookRules are those of a webhook that is asked about objects which no test makes, and of one about pods.
const (
	webhookRules = `sideEffects: None, admissionReviewVersions: [v1], rules: [{apiGroups: [none.example.com], ` +
		`apiVersions: [v1], operations: [CREATE], resources: [nothings]}]`
	podRules = `sideEffects: None, admissionReviewVersions: [v1], rules: [{apiGroups: ["*"], apiVersions: ["*"], ` +
		`operations: [CREATE], resources: [pods]}]`
)

// statuses are what controllers write, by the names of objects.
var statuses = map[string]string{
	"single":              "{expectedPods: 1, desiredHealthy: 1, currentHealthy: 1, disruptionsAllowed: 0}",
	"lossies.example.com": "{storedVersions: [v1, v2], acceptedNames: {plural: lossies, kind: Lossy}, conditions: []}",
	"unpulled": "{phase: Pending, containerStatuses: [{name: web, image: '', imageID: '', ready: false, " +
		"restartCount: 0, state: {waiting: {reason: ImagePullBackOff, message: not found}}}]}",
}

// make creates the objects of a YAML file, with their status.
func (l *living) make(t *testing.T, file string) {
	t.Helper()

	client, err := dynamic.NewForConfig(l.config())
	check(t, err)

	for _, document := range strings.Split(file, "\n---\n") {
		object := &unstructured.Unstructured{}
		check(t, yaml.Unmarshal([]byte(document), &object.Object))

		kind := object.GroupVersionKind()
		gvr, _ := meta.UnsafeGuessKindToResource(kind)
		resources := client.Resource(gvr).Namespace(object.GetNamespace())

		_, err := resources.Create(t.Context(), object, metav1.CreateOptions{})
		check(t, err)

		status := object.Object["status"]
		if object.GetKind() != "Deployment" && status == nil {
			check(t, yaml.Unmarshal([]byte(statuses[object.GetName()]), &status))
		}

		if status != nil {
			patch, err := json.Marshal(map[string]any{"status": status})
			check(t, err)

			_, err = resources.Patch(t.Context(), object.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}, "status")
			check(t, err)
		}
	}
}

// A real API server has each problem once, and none is reported for what works.
func TestUpgradeChecks_problemsOfAnyVersion(t *testing.T) {
	t.Parallel()

	l := newLiving(t, assets(t))

	file := obstructing
	for _, trouble := range slices.Backward(kubetest.Troubles()) {
		file = trouble.Manifest + "---" + file
	}

	l.make(t, strings.NewReplacer("EXPIRED", base64.StdEncoding.EncodeToString(kubetest.ExpiredCertificate(t)), "RULES",
		webhookRules, "PODS", podRules).Replace(file))

	client := l.client(t)
	found, err := client.UpgradeChecks(within(t, time.Minute), nil, nil, nil, nil)
	check(t, err)

	extensions, err := client.MissingExtensions(t.Context(), []string{"siderolabs/util-linux-tools"})
	check(t, err)

	pods, err := client.UnreadyPods(t.Context())
	check(t, err)

	got := map[string]string{}
	for _, pod := range pods {
		got[upgrade.PodCode+" "+pod.Object.String()] = pod.Reason
	}

	secrets, err := client.ExpiredSecrets(t.Context())
	check(t, err)

	for _, p := range slices.Concat(found.AllProblems(), extensions, secrets) {
		reason, _, _ := strings.Cut(p.Reason, " at ")
		got[p.Code+" "+p.Object] = reason
	}

	more, gone := "MutatingWebhookConfiguration more, webhook ", "its Service default/gone does not exist"
	want := map[string]string{
		upgrade.ExtensionCode + " CSIDriver driver.longhorn.io":      "it needs the extension siderolabs/iscsi-tools",
		upgrade.EndpointCode + " " + more + "asleep.example.com":     "its Service default/asleep has no ready endpoint",
		upgrade.CertificateCode + " " + more + "expired.example.com": "its CA expired",
		upgrade.WebhookCode + " " + more + "pods.example.com":        gone,
		upgrade.WebhookCode + " " + more + "system.example.com": gone + ", and it is called for new pods of kube-system, " +
			"so kubelets cannot show that the control plane was upgraded",
		upgrade.ConversionCode + " CustomResourceDefinition unmoveds.example.com": gone,
		upgrade.AggregatedCode + " APIService v1.stale.example.com":               gone,
	}

	reasons := map[string]string{
		upgrade.PodCode: "container web is waiting: ImagePullBackOff (not found)", upgrade.WebhookCode: gone,
		upgrade.ExtensionCode: "it needs the extension siderolabs/gvisor", upgrade.CertificateCode: "its certificate expired",
		upgrade.EvictionCode:   "it requires 1 healthy pods of 1, so none can be evicted",
		upgrade.ConversionCode: "objects may be stored as v1, and no webhook converts them to v2, which lacks spec.old",
	}
	for _, trouble := range kubetest.Troubles() {
		want[trouble.Code+" "+trouble.Object] = reasons[trouble.Code]
	}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems differ (-want +got):\n%s", diff)
	}
}
