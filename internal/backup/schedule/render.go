package schedule

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"text/template"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Labels and annotations of the objects.
const (
	// Label has the name of the schedule, on everything but the namespace.
	Label = "talosop.dev/etcd-backup-schedule"
	// MadeAnnotation is on a namespace that was made for schedules.
	MadeAnnotation = "talosop.dev/made-for"
	// contentAnnotation has the digest of a Secret's content, which is stored nowhere else, to find changes of it.
	contentAnnotation = "talosop.dev/content"
	managedBy         = "app.kubernetes.io/managed-by"
	manager           = "talosop"
)

// The API of the objects.
const (
	coreAPI  = "v1"
	batchAPI = "batch/v1"
	// TalosAPI and TalosKind are the Talos ServiceAccount (Talos 1.13, constants).
	TalosAPI  = "talos.dev/v1alpha1"
	TalosKind = "ServiceAccount"
	// TalosConfigKey is the key in Talos's Secret (Talos 1.13, constants.TalosconfigFilename).
	TalosConfigKey = "config"
)

// The names of the objects besides the CronJob, which has that of the schedule.
func (s Spec) talosName() string  { return s.Name + "-talos" }
func (s Spec) secretName() string { return s.Name + "-s3" }

type object = map[string]any

// NamespaceObject is the namespace. Its pods conform to the strictest PodSecurity profile, as those of the schedule do.
func (s Spec) NamespaceObject() map[string]any {
	return object{
		"apiVersion": coreAPI, "kind": "Namespace",
		"metadata": object{
			"name":        s.Namespace,
			"labels":      object{managedBy: manager, "pod-security.kubernetes.io/enforce": "restricted"},
			"annotations": object{MadeAnnotation: "etcd-backup-schedules"},
		},
	}
}

// Made reports whether a namespace, as the API has it, was made for schedules.
func Made(namespace map[string]any) bool {
	_, made := (&unstructured.Unstructured{Object: namespace}).GetAnnotations()[MadeAnnotation]

	return made
}

// Owned reports whether an object, as the API has it, is of the schedule of that name.
func Owned(o map[string]any, name string) bool {
	labels := (&unstructured.Unstructured{Object: o}).GetLabels()

	return labels[managedBy] == manager && labels[Label] == name
}

func (s Spec) labels() map[string]string {
	return map[string]string{managedBy: manager, "app.kubernetes.io/name": "talos-backup", Label: s.Name}
}

// Selector finds everything that has the schedule's label.
func (s Spec) Selector() string { return Label + "=" + s.Name }

func (s Spec) object(apiVersion, kind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: object{"apiVersion": apiVersion, "kind": kind}}
	u.SetNamespace(s.Namespace)
	u.SetName(name)
	u.SetLabels(s.labels())

	return u
}

// TalosAccount is the ServiceAccount for which Talos makes a Secret of the same name.
func (s Spec) TalosAccount() map[string]any {
	account := s.object(TalosAPI, TalosKind, s.talosName())
	account.Object["spec"] = object{"roles": []any{Role}}

	return account.Object
}

// Secret is the access to the bucket.
func (s Spec) Secret(c Credentials) map[string]any {
	data := object{}

	for key, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": c.AccessKeyID, "AWS_SECRET_ACCESS_KEY": c.SecretAccessKey, "AWS_SESSION_TOKEN": c.SessionToken,
		"ca.crt": s.Bucket.CA,
	} {
		if value != "" {
			data[key] = base64.StdEncoding.EncodeToString([]byte(value))
		}
	}

	secret := s.object(coreAPI, "Secret", s.secretName())
	secret.SetAnnotations(map[string]string{contentAnnotation: digest(data)})
	secret.Object["type"], secret.Object["data"] = "Opaque", data

	return secret.Object
}

func digest(data object) string {
	var text []byte
	for _, key := range slices.Sorted(maps.Keys(data)) {
		value, _ := data[key].(string)
		text = fmt.Appendf(text, "%d:%s%d:%s", len(key), key, len(value), value)
	}

	return fmt.Sprintf("%x", sha256.Sum256(text))
}

// Altered says what was changed in the content of the schedule's Secret, as the API has it; empty for nothing. No value
// is in it.
func Altered(secret map[string]any) string {
	data, _ := secret["data"].(object)
	if (&unstructured.Unstructured{Object: secret}).GetAnnotations()[contentAnnotation] != digest(data) {
		return "the data changed"
	}

	return ""
}

//go:embed cronjob.yaml
var cronJobSpec string

var cronJobTemplate = template.Must(template.New("cronjob.yaml").Funcs(template.FuncMap{
	"list":    func(all ...string) []string { return all },
	"seconds": func(d time.Duration) int64 { return int64(d / time.Second) },
	"json": func(v any) (string, error) {
		text, err := json.Marshal(v)

		return string(text), err
	},
}).Parse(cronJobSpec))

// CronJob runs talos-backup. It does not depend on the credentials, which are not always at hand: what the Secret lacks
// is not set in the pod.
func (s Spec) CronJob() map[string]any {
	var (
		text bytes.Buffer
		spec object
	)

	err := cronJobTemplate.Execute(&text, struct {
		Spec

		Labels                      map[string]string
		Stem, TalosName, SecretName string
	}{s, s.labels(), s.stem(), s.talosName(), s.secretName()})
	if err == nil {
		err = yaml.Unmarshal(text.Bytes(), &spec)
	}

	if err != nil {
		panic(err) // the template is that of the program, and every field of a Spec is JSON in it
	}

	cronJob := s.object(batchAPI, "CronJob", s.Name)
	cronJob.Object["spec"] = spec

	return cronJob.Object
}

// JobNow is a run on demand of a CronJob that the API has, as `kubectl create job --from` makes it (kubectl 0.36,
// createJobFromCronJob): the CronJob counts it among its own. The same wish gives the same name.
func (s Spec) JobNow(cronJob map[string]any, wish string) map[string]any {
	spec, _ := cronJob["spec"].(object)
	template, _ := spec["jobTemplate"].(object)
	sum := sha256.Sum256([]byte(wish))

	job := s.object(batchAPI, "Job", fmt.Sprintf("%s-now-%x", s.Name, sum[:3]))
	job.SetLabels((&unstructured.Unstructured{Object: template}).GetLabels())
	job.SetAnnotations(map[string]string{"cronjob.kubernetes.io/instantiate": "manual"})
	job.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: batchAPI, Kind: "CronJob", Name: s.Name,
		UID: (&unstructured.Unstructured{Object: cronJob}).GetUID(), Controller: new(true)}})
	job.Object["spec"] = template["spec"]

	return job.Object
}
