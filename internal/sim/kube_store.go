package sim

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// kind is a resource type the stand-in serves.
type kind struct {
	group, version, resource, title string
	namespaced                      bool
}

func (k kind) apiVersion() string {
	if k.group == "" {
		return k.version
	}

	return k.group + "/" + k.version
}

// kinds are the types that clients of a cluster without workloads touch.
var kinds = []kind{
	{"", "v1", "nodes", "Node", false},
	{"", "v1", "namespaces", "Namespace", false},
	{"", "v1", "configmaps", "ConfigMap", true},
	{"", "v1", "secrets", "Secret", true},
	{"", "v1", "pods", "Pod", true},
	{"", "v1", "services", "Service", true},
	{"", "v1", "serviceaccounts", "ServiceAccount", true},
	{"", "v1", "events", "Event", true},
	{"coordination.k8s.io", "v1", "leases", "Lease", true},
	{"apps", "v1", "daemonsets", "DaemonSet", true},
	{"apps", "v1", "deployments", "Deployment", true},
	{"apps", "v1", "replicasets", "ReplicaSet", true},
	{"apps", "v1", "statefulsets", "StatefulSet", true},
	{"batch", "v1", "cronjobs", "CronJob", true},
	{"policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", true},
	{"rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", false},
	{"rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", false},
	{"rbac.authorization.k8s.io", "v1", "roles", "Role", true},
	{"rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", true},
	{"storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment", false},
}

var (
	errObjectNotFound = errors.New("not found")
	errObjectExists   = errors.New("already exists")
	errObjectConflict = errors.New(
		"the object has been modified; please apply your changes to the latest version and try again")
)

// change is one change of an object, for watches.
type change struct {
	version int
	kind    kind
	event   string // ADDED, MODIFIED, DELETED
	object  *unstructured.Unstructured
}

// keptChanges is how far back a watch may start.
const keptChanges = 1000

// objectStore holds Kubernetes objects, and keys of tests; it is what the stand-ins have
// instead of etcd's keys.
type objectStore struct {
	mu      sync.Mutex
	version int
	objects map[string]*unstructured.Unstructured
	plain   map[string]plainKey
	changes []change
	changed chan struct{}
}

func newObjectStore() *objectStore {
	return &objectStore{objects: map[string]*unstructured.Unstructured{}, plain: map[string]plainKey{}, changed: make(chan struct{})}
}

func objectKey(k kind, namespace, name string) string {
	return strings.Join([]string{k.group, k.resource, namespace, name}, "/")
}

func (s *objectStore) get(k kind, namespace, name string) (*unstructured.Unstructured, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	obj := s.objects[objectKey(k, namespace, name)]
	if obj == nil {
		return nil, errObjectNotFound
	}

	return obj.DeepCopy(), nil
}

// list returns the selected objects, sorted by namespace and name, and the store's version.
func (s *objectStore) list(k kind, namespace string, sel selector) ([]*unstructured.Unstructured, int) {
	s.mu.Lock()
	defer s.mu.Unlock()

	prefix := objectKey(k, namespace, "")
	if namespace == "" {
		prefix = strings.Join([]string{k.group, k.resource, ""}, "/")
	}

	var keys []string

	for key, obj := range s.objects {
		if strings.HasPrefix(key, prefix) && sel.matches(obj) {
			keys = append(keys, key)
		}
	}

	slices.Sort(keys)

	items := make([]*unstructured.Unstructured, 0, len(keys))
	for _, key := range keys {
		items = append(items, s.objects[key].DeepCopy())
	}

	return items, s.version
}

// keepStringData is what the API server does with the text that a Secret is written with.
func keepStringData(obj *unstructured.Unstructured) {
	text, found, err := unstructured.NestedStringMap(obj.Object, "stringData")
	if err != nil || !found || obj.GetKind() != "Secret" {
		return
	}

	unstructured.RemoveNestedField(obj.Object, "stringData")

	for key, value := range text {
		_ = unstructured.SetNestedField(obj.Object, base64.StdEncoding.EncodeToString([]byte(value)), "data", key) // of a map that is one
	}
}

func (s *objectStore) create(k kind, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if obj.GetName() == "" && obj.GetGenerateName() != "" {
		obj.SetName(obj.GetGenerateName() + uuid.NewString()[:5])
	}

	key := objectKey(k, obj.GetNamespace(), obj.GetName())
	if s.objects[key] != nil {
		return nil, errObjectExists
	}

	obj = obj.DeepCopy()
	obj.SetAPIVersion(k.apiVersion())
	obj.SetKind(k.title)
	keepStringData(obj)
	obj.SetUID(types.UID(uuid.NewString()))
	obj.SetCreationTimestamp(metav1.Now())
	obj.SetGeneration(1)
	s.store(k, key, "ADDED", obj)

	return obj.DeepCopy(), nil
}

// update replaces an object through change, which gets a copy of the current one. A
// resource version that is set and is not the current one is a conflict.
func (s *objectStore) update(
	k kind, namespace, name string, change func(*unstructured.Unstructured) (*unstructured.Unstructured, error),
) (*unstructured.Unstructured, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	key := objectKey(k, namespace, name)

	old := s.objects[key]
	if old == nil {
		return nil, errObjectNotFound
	}

	obj, err := change(old.DeepCopy())
	if err != nil {
		return nil, err
	}

	if v := obj.GetResourceVersion(); v != "" && v != old.GetResourceVersion() {
		return nil, errObjectConflict
	}

	if uid := obj.GetUID(); uid != "" && uid != old.GetUID() {
		return nil, errObjectConflict
	}

	obj.SetAPIVersion(k.apiVersion())
	obj.SetKind(k.title)
	obj.SetName(name)
	obj.SetNamespace(namespace)
	obj.SetUID(old.GetUID())
	obj.SetCreationTimestamp(old.GetCreationTimestamp())
	obj.SetGeneration(old.GetGeneration())

	if !sameContent(old, obj) {
		obj.SetGeneration(old.GetGeneration() + 1)
	}

	s.store(k, key, "MODIFIED", obj)

	return obj.DeepCopy(), nil
}

// sameContent compares what counts for an object's generation.
func sameContent(a, b *unstructured.Unstructured) bool {
	content := func(obj *unstructured.Unstructured) map[string]any {
		rest := maps.Clone(obj.Object)
		for _, field := range []string{"metadata", "status", "apiVersion", "kind"} {
			delete(rest, field)
		}

		return rest
	}

	return reflect.DeepEqual(content(a), content(b))
}

func (s *objectStore) remove(k kind, namespace, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	key := objectKey(k, namespace, name)

	obj := s.objects[key]
	if obj == nil {
		return errObjectNotFound
	}

	s.store(k, key, "DELETED", obj.DeepCopy())
	delete(s.objects, key)

	return nil
}

// store writes an object under the next version and wakes watches. mu is held.
func (s *objectStore) store(k kind, key, event string, obj *unstructured.Unstructured) {
	s.version++
	obj.SetResourceVersion(strconv.Itoa(s.version))
	s.objects[key] = obj
	s.changes = append(s.changes, change{version: s.version, kind: k, event: event, object: obj})

	if over := len(s.changes) - keptChanges; over > 0 {
		s.changes = slices.Clone(s.changes[over:])
	}

	close(s.changed)
	s.changed = make(chan struct{})
}

// since returns the changes of a kind after a version, and a channel for the next ones.
func (s *objectStore) since(k kind, version int) ([]change, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()

	var found []change

	for _, c := range s.changes {
		if c.kind == k && c.version > version {
			found = append(found, c)
		}
	}

	return found, s.changed
}

// selector is the label and field selection of a list or watch.
type selector struct {
	labels labels.Selector
	fields fields.Selector
}

func parseSelector(label, field string) (selector, error) {
	l, err := labels.Parse(label)
	if err != nil {
		return selector{}, fmt.Errorf("parse label selector: %w", err)
	}

	f, err := fields.ParseSelector(field)
	if err != nil {
		return selector{}, fmt.Errorf("parse field selector: %w", err)
	}

	return selector{labels: l, fields: f}, nil
}

func (s selector) matches(obj *unstructured.Unstructured) bool {
	if s.labels == nil {
		return true
	}

	return s.labels.Matches(labels.Set(obj.GetLabels())) && s.fields.Matches(fieldsOf(obj))
}

// fieldsOf looks selected fields up in the object itself.
type objectFields struct{ obj *unstructured.Unstructured }

func fieldsOf(obj *unstructured.Unstructured) fields.Fields { return objectFields{obj} }

// Has implements fields.Fields.
func (f objectFields) Has(field string) bool { return f.Get(field) != "" }

// Get implements fields.Fields.
func (f objectFields) Get(field string) string {
	value, found, err := unstructured.NestedFieldNoCopy(f.obj.Object, strings.Split(field, ".")...)
	if err != nil || !found {
		return ""
	}

	if text, ok := value.(string); ok {
		return text
	}

	encoded, err := json.Marshal(value)
	if err != nil {
		return ""
	}

	return string(encoded)
}

// next is closed with the next change of any object.
func (s *objectStore) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.changed
}

// put writes keys that are no objects.
func (s *objectStore) put(values map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for key, value := range values {
		s.version++
		s.plain[key] = plainKey{version: s.version, value: []byte(value)}
	}
}

// keys reads those that are no objects, by their prefix.
func (s *objectStore) keys(prefix string) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()

	values := map[string]string{}

	for key, kept := range s.plain {
		if strings.HasPrefix(key, prefix) {
			values[key] = string(kept.value)
		}
	}

	return values
}
