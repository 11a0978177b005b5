package objects

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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Kind is a resource type the stand-in serves.
type Kind struct {
	Group, Version, Resource, Title string
	Namespaced                      bool
}

// APIVersion is the group and version of the kind.
func (k Kind) APIVersion() string {
	return schema.GroupVersion{Group: k.Group, Version: k.Version}.String()
}

// GroupResource is the kind as errors name it.
func (k Kind) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.Resource}
}

// Conflict is the error of a write to another object than the one that is there.
func (k Kind) Conflict(name string) error {
	return apierrors.NewConflict(k.GroupResource(), name, errors.New(
		"the object has been modified; please apply your changes to the latest version and try again"))
}

// Kinds are the types that clients of a cluster without workloads touch.
var Kinds = []Kind{
	{"", "v1", "nodes", "Node", false},
	{"", "v1", "namespaces", "Namespace", false},
	{"", "v1", "configmaps", "ConfigMap", true},
	{"", "v1", "secrets", "Secret", true},
	{"", "v1", "pods", "Pod", true},
	{"", "v1", "services", "Service", true},
	{"", "v1", "serviceaccounts", "ServiceAccount", true},
	{"", "v1", "events", "Event", true},
	{"", "v1", "persistentvolumes", "PersistentVolume", false},
	{"", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", true},
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

// Change is one change of an object, for watches.
type Change struct {
	Version int
	kind    Kind
	Event   string // ADDED, MODIFIED, DELETED
	Object  *unstructured.Unstructured
}

// keptChanges is how far back a watch may start.
const keptChanges = 1000

// Store holds Kubernetes objects, and keys of tests; it is what the stand-ins have
// instead of etcd's keys.
type Store struct {
	mu      sync.Mutex
	version int
	objects map[string]*unstructured.Unstructured
	plain   map[string]plainKey
	changes []Change
	changed chan struct{}
}

// NewStore makes an empty store.
func NewStore() *Store {
	return &Store{objects: map[string]*unstructured.Unstructured{}, plain: map[string]plainKey{},
		changed: make(chan struct{})}
}

func objectKey(k Kind, namespace, name string) string {
	return strings.Join([]string{k.Group, k.Resource, namespace, name}, "/")
}

// Get is an object by its name.
func (s *Store) Get(k Kind, namespace, name string) (*unstructured.Unstructured, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	obj := s.objects[objectKey(k, namespace, name)]
	if obj == nil {
		return nil, apierrors.NewNotFound(k.GroupResource(), name)
	}

	return obj.DeepCopy(), nil
}

// List returns the selected objects, sorted by namespace and name, and the store's version.
func (s *Store) List(k Kind, namespace string, sel Selector) ([]*unstructured.Unstructured, int) {
	s.mu.Lock()
	defer s.mu.Unlock()

	prefix := objectKey(k, namespace, "")
	if namespace == "" {
		prefix = strings.Join([]string{k.Group, k.Resource, ""}, "/")
	}

	var keys []string

	for key, obj := range s.objects {
		if strings.HasPrefix(key, prefix) && sel.Matches(obj) {
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
		// of a map that is one
		_ = unstructured.SetNestedField(obj.Object, base64.StdEncoding.EncodeToString([]byte(value)), "data", key)
	}
}

// Create stores a new object.
func (s *Store) Create(k Kind, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if obj.GetName() == "" && obj.GetGenerateName() != "" {
		obj.SetName(obj.GetGenerateName() + uuid.NewString()[:5])
	}

	key := objectKey(k, obj.GetNamespace(), obj.GetName())
	if s.objects[key] != nil {
		return nil, apierrors.NewAlreadyExists(k.GroupResource(), obj.GetName())
	}

	obj = obj.DeepCopy()
	obj.SetAPIVersion(k.APIVersion())
	obj.SetKind(k.Title)
	keepStringData(obj)
	obj.SetUID(types.UID(uuid.NewString()))
	obj.SetCreationTimestamp(metav1.Now())
	obj.SetGeneration(1)
	s.store(k, key, "ADDED", obj)

	return obj.DeepCopy(), nil
}

// Update replaces an object through change, which gets a copy of the current one. A
// resource version that is set and is not the current one is a conflict.
func (s *Store) Update(
	k Kind, namespace, name string, change func(*unstructured.Unstructured) (*unstructured.Unstructured, error),
) (*unstructured.Unstructured, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	key := objectKey(k, namespace, name)

	old := s.objects[key]
	if old == nil {
		return nil, apierrors.NewNotFound(k.GroupResource(), name)
	}

	obj, err := change(old.DeepCopy())
	if err != nil {
		return nil, err
	}

	if !slices.Contains([]string{"", old.GetResourceVersion()}, obj.GetResourceVersion()) ||
		!slices.Contains([]types.UID{"", old.GetUID()}, obj.GetUID()) {
		return nil, k.Conflict(name)
	}

	obj.SetAPIVersion(k.APIVersion())
	obj.SetKind(k.Title)
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

// Remove deletes an object.
func (s *Store) Remove(k Kind, namespace, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	key := objectKey(k, namespace, name)

	obj := s.objects[key]
	if obj == nil {
		return apierrors.NewNotFound(k.GroupResource(), name)
	}

	s.store(k, key, "DELETED", obj.DeepCopy())
	delete(s.objects, key)

	return nil
}

// store writes an object under the next version and wakes watches. mu is held.
func (s *Store) store(k Kind, key, event string, obj *unstructured.Unstructured) {
	s.version++
	obj.SetResourceVersion(strconv.Itoa(s.version))
	s.objects[key] = obj
	s.changes = append(s.changes, Change{Version: s.version, kind: k, Event: event, Object: obj})

	if over := len(s.changes) - keptChanges; over > 0 {
		s.changes = slices.Clone(s.changes[over:])
	}

	close(s.changed)
	s.changed = make(chan struct{})
}

// Since returns the changes of a kind after a version, and a channel for the next ones.
func (s *Store) Since(k Kind, version int) ([]Change, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()

	var found []Change

	for _, c := range s.changes {
		if c.kind == k && c.Version > version {
			found = append(found, c)
		}
	}

	return found, s.changed
}

// Selector is the label and field selection of a list or watch.
type Selector struct {
	Labels labels.Selector
	Fields fields.Selector
}

// ParseSelector reads the selectors of a request.
func ParseSelector(label, field string) (Selector, error) {
	l, err := labels.Parse(label)
	if err != nil {
		return Selector{}, fmt.Errorf("parse label selector: %w", err)
	}

	f, err := fields.ParseSelector(field)
	if err != nil {
		return Selector{}, fmt.Errorf("parse field selector: %w", err)
	}

	return Selector{Labels: l, Fields: f}, nil
}

// Matches reports whether an object is selected.
func (s Selector) Matches(obj *unstructured.Unstructured) bool {
	if s.Labels == nil {
		return true
	}

	return s.Labels.Matches(labels.Set(obj.GetLabels())) && s.Fields.Matches(fieldsOf(obj))
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

// Next is closed with the next change of any object.
func (s *Store) Next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.changed
}

// Put writes keys outside of the objects.
func (s *Store) Put(values map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for key, value := range values {
		s.version++
		s.plain[key] = plainKey{version: s.version, value: []byte(value)}
	}
}

// Keys reads keys outside of the objects, by their prefix.
func (s *Store) Keys(prefix string) map[string]string {
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
