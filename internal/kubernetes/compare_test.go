package kubernetes_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// parsed reads YAML as charts have it.
func parsed(t *testing.T, text string) object {
	t.Helper()

	var o object
	check(t, yaml.Unmarshal([]byte(text), &o))

	return o
}

// helm makes requests for objects as Helm does: as its field manager, and without server-side
// apply.
type helm struct{ dynamic.Interface }

func (l *living) helm(t *testing.T) helm {
	t.Helper()

	client, err := dynamic.NewForConfig(l.config())
	check(t, err)

	return helm{client}
}

func (h helm) resource(t *testing.T, l *living, o object) dynamic.ResourceInterface {
	t.Helper()

	groups, err := restmapper.GetAPIGroupResources(discovery.NewDiscoveryClient(l.api.CoreV1().RESTClient()))
	check(t, err)

	ref := objects.ReferenceTo(o)
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	mapping, err := restmapper.NewDiscoveryRESTMapper(groups).RESTMapping(gvk.GroupKind(), gvk.Version)
	check(t, err)

	if mapping.Scope.Name() == "root" {
		return h.Resource(mapping.Resource)
	}

	return h.Resource(mapping.Resource).Namespace(ref.Namespace)
}

func (h helm) create(t *testing.T, l *living, o object) {
	t.Helper()

	_, err := h.resource(t, l, o).Create(t.Context(), (&unstructured.Unstructured{Object: o}).DeepCopy(),
		metav1.CreateOptions{FieldManager: "Helm"})
	check(t, err)
}

func (h helm) patch(t *testing.T, l *living, o object, patch string) {
	t.Helper()

	_, err := h.resource(t, l, o).Patch(t.Context(), objects.ReferenceTo(o).Name, types.MergePatchType, []byte(patch),
		metav1.PatchOptions{FieldManager: "Helm"})
	check(t, err)
}

// likeCharts are objects as charts write them: the API server normalizes, defaults, or drops some of each. Their
// %s is the namespace of the test.
var likeCharts = map[string]string{
	"normalised": `
apiVersion: apps/v1
kind: Deployment
metadata: {name: app, namespace: %s, annotations: {}, labels: null, creationTimestamp: null}
spec:
  replicas: 1
  selector: {matchLabels: {app: x}}
  strategy: {}
  revisionHistoryLimit: null
  template:
    metadata: {creationTimestamp: null, annotations: null, labels: {app: x}}
    spec:
      nodeSelector: {}
      tolerations: []
      affinity: null
      initContainers: null
      containers:
        - name: main
          image: example.org/app
          command: [a, b]
          env: []
          ports: [{containerPort: 80}, {containerPort: 81, protocol: UDP}, {containerPort: 80, protocol: UDP}]
          resources: {limits: {cpu: 1000m, memory: 1024Mi}, requests: {cpu: 0.5, memory: 1Gi}}
          securityContext: {}
          livenessProbe: {httpGet: {path: /, port: 80}}
      volumes: [{name: tmp, emptyDir: {}}]
status: {replicas: 7}
`,
	"environment twice": `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: twice, namespace: %s}
spec:
  selector: {matchLabels: {app: x}}
  template:
    metadata: {labels: {app: x}}
    spec:
      containers:
        - {name: main, image: example.org/app, env: [{name: A, value: "1"}, {name: A, value: "2"}], resources: {limits: {cpu: 1000m}}}
        - {name: side, image: example.org/side, ports: [{containerPort: 80}]}
`,
	"unknown field": `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: unknown, namespace: %s}
spec:
  serviceName: unknown
  isNoField: 1
  selector: {matchLabels: {app: x}}
  template:
    metadata: {labels: {app: x}}
    spec: {containers: [{name: main, image: example.org/app, resources: {requests: {memory: 1024Mi}}}]}
`,
	"secret": "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: %s}, stringData: {a: b, n: \"1\"}, " +
		"data: {c: ZA==}}",
	"config": "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: %s}, data: {a: \"1\", b: \"\", " +
		"c: null}}",
	"service": "{apiVersion: v1, kind: Service, metadata: {name: s, namespace: %s}, spec: {clusterIP: null, " +
		"type: NodePort, selector: {a: b}, ports: [{port: 80, name: web}, {port: 80, protocol: UDP, name: udp, targetPort: " +
		"dns}]}}",
	"nameless ports": "{apiVersion: v1, kind: Service, metadata: {name: nameless, namespace: %s}, spec: {clusterIP: " +
		"None, externalName: \"\", ports: [{port: 80}]}}",
	"job": "{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: %s}, spec: {template: {spec: " +
		"{restartPolicy: Never, containers: [{name: main, image: example.org/app, args: [\"1\", b]}]}}}}",
	"cron job": "{apiVersion: batch/v1, kind: CronJob, metadata: {name: j, namespace: %s}, spec: {schedule: " +
		"\"@daily\", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: " +
		"example.org/app}]}}}}}}",
	"claim": "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c, namespace: %s}, spec: " +
		"{accessModes: [ReadWriteOnce], resources: {requests: {storage: 1024Mi}}}}",
	"policy": "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: nameless, namespace: " +
		"%s}, spec: {podSelector: {}, ingress: [], egress: [{ports: [{port: 53}]}]}}",
	"roles": "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: r, namespace: " +
		"%s}, roleRef: {kind: ClusterRole, name: view}, subjects: [{kind: User, name: a}]}",
	"budget": "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b, namespace: %s}, spec: " +
		"{minAvailable: 50%%, selector: {}}}",
	// Of a kind without a namespace, in a namespace.
	"cluster-wide": "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: compared, " +
		"namespace: %s}, rules: [{apiGroups: [\"\"], resources: [pods], verbs: [get]}]}",
	"webhook": "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: " +
		"{name: compared.example.org, namespace: %s}, webhooks: [{name: a.example.org, admissionReviewVersions: [v1], " +
		"sideEffects: None, clientConfig: {service: {name: a, namespace: b}}, rules: [{apiGroups: [none.example.org], " +
		"apiVersions: [v1], operations: [CREATE], resources: [pods]}]}]}",
	"definition": definition("compared", "Compared",
		"{type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}}"),
}

// definition of a custom resource of the group example.org, as generators write them.
func definition(plural, kind, schema string) string {
	return fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %s.example.org, creationTimestamp: null}
spec:
  group: example.org
  scope: Namespaced
  preserveUnknownFields: false
  names: {kind: %s, plural: %s}
  versions:
    - {name: v1, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: %s}}
status: {acceptedNames: {kind: "", plural: ""}, conditions: [], storedVersions: []}
`, plural, kind, plural, schema)
}

// An object that Helm made equals its chart, in any spelling of the chart, until another client changes it.
func testChartObjects(t *testing.T, l *living, c *kubernetes.Client) {
	t.Helper()

	ns, h := l.namespace(t, "charts"), l.helm(t)

	for name, text := range likeCharts {
		t.Run(name, func(t *testing.T) {
			if strings.Contains(text, "%s") {
				text = fmt.Sprintf(text, ns)
			}

			o := parsed(t, text)
			h.create(t, l, o)
			expectDifferences(t, c, o)

			h.patch(t, l, o, `{"metadata": {"annotations": {"added": "by somebody"}}}`)
			expectDifferences(t, c, o)
		})
	}
}

// A change by another client is found, even where server-side apply refuses the chart's object.
func testChangedChartObjects(t *testing.T, l *living, c *kubernetes.Client) {
	t.Helper()

	ns, h := l.namespace(t, "changed"), l.helm(t)

	for name, test := range map[string]struct {
		of, patch string
		want      []string
	}{
		"normalised": {
			of: "normalised", patch: `{"spec": {"replicas": 3, "template": {"spec": {"tolerations": [{"operator": "Exists"}], "hostNetwork": true}}}}`,
			want: []string{"spec.replicas is 3 instead of 1", "spec.template.spec.tolerations was added"},
		},
		"environment twice": {
			of: "environment twice", patch: `{"spec": {"template": {"spec": {"containers": [
				{"name": "side", "image": "example.org/another", "env": [{"name": "ADDED", "value": "x"}]},
				{"name": "main", "image": "example.org/app", "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "3"}]}]}}}}`,
			want: []string{
				`spec.template.spec.containers[main].env is [{"name":"A","value":"1"},{"name":"A","value":"3"}] instead of [{"name":"A","value":"1"},{"name":"A","value":"2"}]`,
				"spec.template.spec.containers[main].resources.limits is missing",
				`spec.template.spec.containers[side].image is "example.org/another" instead of "example.org/side"`,
				"spec.template.spec.containers[side].ports is missing",
			},
		},
		"unknown field": {of: "unknown field", patch: `{"spec": {"replicas": 5}}`},
		"secret": {of: "secret", patch: `{"data": {"a": "eA==", "c": null, "more": "eA=="}}`,
			want: []string{`data.a is "eA==" instead of "Yg=="`, "data.c is missing"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := parsed(t, fmt.Sprintf(likeCharts[test.of], ns))
			h.create(t, l, o)
			h.patch(t, l, o, test.patch)
			expectDifferences(t, c, o, test.want...)
		})
	}
}

// Of a custom resource the API server knows what its definition says, which may be little.
func testCustomObjects(t *testing.T, l *living, c *kubernetes.Client) {
	t.Helper()

	ns, h := l.namespace(t, "custom"), l.helm(t)
	h.create(t, l, parsed(t, definition("customs", "Custom", `{type: object, properties: {
		loose: {type: object, x-kubernetes-preserve-unknown-fields: true},
		strict: {type: object, properties: {n: {type: integer, default: 3}, list: {type: array, items: {type: string}}, empty: {type: object}, or: {type: string, nullable: true}}}}}`)))
	check(t, c.AwaitEstablished(within(t, time.Minute), []string{"customs.example.org"}))

	o := parsed(t, fmt.Sprintf(`
apiVersion: example.org/v1
kind: Custom
metadata: {name: a, namespace: %s, creationTimestamp: null}
loose: {quantity: 1000m, float: 1.0, big: 1000000, nothing: null, list: [], map: {}, twice: [{name: a, v: 1}, {name: a, v: 2}], on: "on"}
strict: {list: [], empty: {}, or: null, pruned: {a: 1}}
status: {phase: Wanted}
`, ns))

	awaitTrue(t, func() bool {
		served, err := c.ServesKind(t.Context(), "example.org/v1", "Custom")
		check(t, err)

		return served
	})
	h.create(t, l, o)
	expectDifferences(t, c, o)

	h.patch(t, l, o, `{"loose": {"quantity": "1"}, "strict": {"n": 4, "list": ["added"]}, "more": 1}`)
	expectDifferences(t, c, o, `loose.quantity is "1" instead of "1000m"`, `strict.list is ["added"] instead of []`)

	// The status is its controller's.
	_, err := h.resource(t, l, o).Patch(t.Context(), "a", types.MergePatchType, []byte(`{"status": {"phase": "Real"}}`),
		metav1.PatchOptions{}, "status")
	check(t, err)
	expectDifferences(t, c, o, `loose.quantity is "1" instead of "1000m"`, `strict.list is ["added"] instead of []`)
}

// An object that the API would not change has a separate error, with the API's reason.
func testIncomparable(t *testing.T, l *living, c *kubernetes.Client) {
	t.Helper()

	ns, h := l.namespace(t, "incomparable"), l.helm(t)

	o := parsed(t, fmt.Sprintf(likeCharts["normalised"], ns))
	h.create(t, l, o)
	check(t, unstructured.SetNestedField(o, "another", "spec", "selector", "matchLabels", "app"))
	check(t, unstructured.SetNestedField(o, "another", "spec", "template", "metadata", "labels", "app"))

	if _, _, err := c.CompareObject(t.Context(), o); err == nil || errors.Is(err, api.ErrNoAnswer) ||
		!strings.Contains(err.Error(), "field is immutable") {
		t.Errorf("another selector gives %v", err)
	}

	// An object that does not match the schema is not applied, and the result is final.
	if _, err := c.ApplyObject(t.Context(), parsed(t, fmt.Sprintf(likeCharts["environment twice"], ns))); err == nil ||
		errors.Is(err, api.ErrNoAnswer) ||
		!strings.Contains(err.Error(), "duplicate entries") {
		t.Errorf("applying a variable twice gives %v", err)
	}

	// A missing webhook cannot be asked.
	refused := parsed(t, fmt.Sprintf(
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: refused, namespace: %s, labels: {refuse: \"\"}}}", ns))
	h.create(t, l, refused)
	h.create(t, l, parsed(t, `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: refuses.example.org}
webhooks:
  - name: refuses.example.org
    admissionReviewVersions: [v1]
    sideEffects: None
    clientConfig: {url: "https://127.0.0.1:1/"}
    objectSelector: {matchLabels: {refuse: ""}}
    rules: [{apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [configmaps]}]
`))

	check(t, unstructured.SetNestedField(refused, "x", "data", "y"))
	awaitTrue(t, func() bool {
		_, _, err := c.CompareObject(t.Context(), refused)

		return err != nil && !errors.Is(err, api.ErrNoAnswer) && strings.Contains(err.Error(), "refuses.example.org")
	})
}

// awaitTrue waits for what the API server does a moment later.
func awaitTrue(t *testing.T, is func() bool) {
	t.Helper()

	check(t, wait.Until(within(t, 20*time.Second), 20*time.Millisecond, func(context.Context) error {
		if !is() {
			return errors.New("it is not so")
		}

		return nil
	}))
}
