package schedule

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Labels and annotations of what is made.
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

const (
	// defaultRegion is what most servers other than AWS call themselves.
	defaultRegion = "us-east-1"
	// talosMount is where clients of Talos in pods look for credentials (Talos 1.13, constants.ServiceAccountMountPath).
	talosMount = "/var/run/secrets/talos.dev"
	// caMount has the certificates of the bucket's server. Go reads those of SSL_CERT_DIR besides (crypto/x509).
	caMount    = "/etc/talosop"
	caKey      = "ca.crt"
	workFolder = "/tmp"
	container  = "talos-backup"
	// user is that of cronjob.sample.yaml.
	user = 1000
	// retries of a run that failed: a snapshot may hit an election.
	retries = 2
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
	return map[string]string{managedBy: manager, "app.kubernetes.io/name": container, Label: s.Name}
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
		caKey: s.Bucket.CA,
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
		return "data is another one"
	}

	return ""
}

// CronJob runs talos-backup. It does not depend on the credentials, which are not always at hand: what the Secret lacks
// is not set in the pod.
func (s Spec) CronJob() map[string]any {
	labels := metav1.ObjectMeta{Labels: s.labels()}
	c := batchv1.CronJob{Spec: batchv1.CronJobSpec{
		Schedule: s.Schedule, Suspend: &s.Suspend,
		// Two snapshots at once would strain etcd.
		ConcurrencyPolicy:          batchv1.ForbidConcurrent,
		SuccessfulJobsHistoryLimit: new(int32(s.Successful)), FailedJobsHistoryLimit: new(int32(s.Failed)),
		JobTemplate: batchv1.JobTemplateSpec{ObjectMeta: labels, Spec: batchv1.JobSpec{
			BackoffLimit: new(int32(retries)),
			// A run that hangs would keep all later ones from beginning.
			ActiveDeadlineSeconds: new(int64(s.RunTimeout / time.Second)),
			Template:              corev1.PodTemplateSpec{ObjectMeta: labels, Spec: s.pod()},
		}},
	}}

	if s.TimeZone != "" {
		c.Spec.TimeZone = &s.TimeZone
	}

	if s.StartingDeadline > 0 {
		c.Spec.StartingDeadlineSeconds = new(int64(s.StartingDeadline / time.Second))
	}

	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&c)
	if err != nil {
		panic(err) // a type of the API
	}

	cronJob := s.object(batchAPI, "CronJob", s.Name)
	cronJob.Object["spec"] = withoutEmpty(content)["spec"]

	return cronJob.Object
}

// withoutEmpty takes out the objects that types have and that are not set: an apply would own these fields.
func withoutEmpty(o object) object {
	for key, value := range o {
		switch value := value.(type) {
		case object:
			if len(withoutEmpty(value)) == 0 && key != "emptyDir" {
				delete(o, key)
			}
		case []any:
			for _, element := range value {
				if element, ok := element.(object); ok {
					withoutEmpty(element)
				}
			}
		}
	}

	return o
}

func (s Spec) pod() corev1.PodSpec {
	pod := corev1.PodSpec{
		// A pod that failed stays, and can be asked why, unlike with OnFailure.
		RestartPolicy:                corev1.RestartPolicyNever,
		AutomountServiceAccountToken: new(false),
		EnableServiceLinks:           new(false),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: new(true), RunAsUser: new(int64(user)), RunAsGroup: new(int64(user)),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name: container, Image: s.Image.Repository + ":" + s.Image.Tag, ImagePullPolicy: corev1.PullIfNotPresent,
			Command:    []string{"/talos-backup"},
			WorkingDir: workFolder, Env: s.environment(), Resources: s.Resources,
			// The end of the log is then in the status of a container that failed.
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
		}},
		NodeSelector: s.NodeSelector, Tolerations: s.Tolerations,
	}

	mount := func(name, path string, readOnly bool, source corev1.VolumeSource) {
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: name, VolumeSource: source})
		pod.Containers[0].VolumeMounts = append(pod.Containers[0].VolumeMounts,
			corev1.VolumeMount{Name: name, MountPath: path, ReadOnly: readOnly})
	}

	mount("work", workFolder, false, corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})
	mount("talos", talosMount, true,
		corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: s.talosName()}})

	if s.Bucket.CA != "" {
		mount("ca", caMount, true, corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: s.secretName(), Items: []corev1.KeyToPath{{Key: caKey, Path: caKey}}}})
	}

	if s.Image.PullSecret != "" {
		pod.ImagePullSecrets = []corev1.LocalObjectReference{{Name: s.Image.PullSecret}}
	}

	return pod
}

func (s Spec) environment() []corev1.EnvVar {
	variables := []corev1.EnvVar{
		{Name: "BUCKET", Value: s.Bucket.Name}, {Name: "CLUSTER_NAME", Value: s.stem()},
		{Name: "S3_PREFIX", Value: s.Folder()},
	}
	region := s.Bucket.Region

	if s.Bucket.Endpoint != "" {
		region = cmp.Or(region, defaultRegion)
	}

	for _, v := range []struct {
		given       bool
		name, value string
	}{
		{region != "", "AWS_REGION", region},
		{s.Bucket.Endpoint != "", "CUSTOM_S3_ENDPOINT", s.Bucket.Endpoint},
		// Up to v0.1.0-beta.3 "false" asks for path style, by mistake (pkg/config/service.go there), commit 0b3984d took the
		// variable away, and it came back as it should be with talos-backup pull request 62.
		{s.Bucket.PathStyle, "USE_PATH_STYLE", strconv.FormatBool(s.Image.Compresses())},
		{s.Compress, "ENABLE_COMPRESSION", "true"},
		{s.Recipient == "", "DISABLE_ENCRYPTION", "true"},
		{s.Recipient != "", "AGE_X25519_PUBLIC_KEY", s.Recipient},
		{s.Bucket.CA != "", "SSL_CERT_DIR", "/etc/ssl/certs:" + caMount},
	} {
		if v.given {
			variables = append(variables, corev1.EnvVar{Name: v.name, Value: v.value})
		}
	}

	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"} {
		variables = append(variables, corev1.EnvVar{Name: name,
			ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: s.secretName()}, Key: name, Optional: new(true),
			}}})
	}

	return variables
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
