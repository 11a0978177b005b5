package schedule

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Labels and annotations of what is made.
const (
	// Label has the name of the schedule, on everything but the namespace.
	Label = "talosop.dev/etcd-backup-schedule"
	// MadeAnnotation is on a namespace that was made for schedules.
	MadeAnnotation = "talosop.dev/made-for"
	// contentAnnotation has the digest of a Secret's content, so that it can be told whether
	// somebody changed what is stored nowhere else. Who reads it, reads the Secret.
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
)

// DefaultRegion is what most servers other than AWS call themselves.
const DefaultRegion = "us-east-1"

const (
	// talosMount is where clients of Talos in pods look for credentials (Talos 1.13,
	// constants.ServiceAccountMountPath).
	talosMount = "/var/run/secrets/talos.dev"
	// TalosConfigKey is the key in Talos's Secret (Talos 1.13, constants.TalosconfigFilename).
	TalosConfigKey = "config"
	// caMount has the certificates of the bucket's server, and is where Go looks for more of
	// them when told (crypto/x509, SSL_CERT_DIR); those of the image are read besides.
	caMount    = "/etc/talosop"
	caVariable = "/etc/ssl/certs:" + caMount
	caKey      = "ca.crt"
	workFolder = "/tmp"
	container  = "talos-backup"
	// user is that of cronjob.sample.yaml.
	user = 1000
	// retries of a run that failed: a snapshot may hit an election.
	retries = 2
)

// names of the objects besides the CronJob, which has that of the schedule.
func (s Spec) talosName() string  { return s.Name + "-talos" }
func (s Spec) secretName() string { return s.Name + "-s3" }

type object = map[string]any

// NamespaceObject is the namespace, for whoever makes it: its pods have to conform to the
// strictest profile, as those of the schedule do.
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
	return nested(namespace, "metadata", "annotations")[MadeAnnotation] != nil
}

// Owned reports whether an object, as the API has it, is of the schedule of that name.
func Owned(o map[string]any, name string) bool {
	labels := nested(o, "metadata", "labels")

	return labels[managedBy] == manager && labels[Label] == name
}

func nested(o object, fields ...string) object {
	for _, field := range fields {
		o, _ = o[field].(object)
	}

	return o
}

func (s Spec) metadata(name string) object {
	labels := object{}
	for key, value := range s.labels() {
		labels[key] = value
	}

	return object{"name": name, "namespace": s.Namespace, "labels": labels}
}

func (s Spec) labels() map[string]string {
	return map[string]string{managedBy: manager, "app.kubernetes.io/name": container, Label: s.Name}
}

// Selector finds everything that has the schedule's label.
func (s Spec) Selector() string { return Label + "=" + s.Name }

// TalosAccount is the ServiceAccount for which Talos makes a Secret of the same name.
func (s Spec) TalosAccount() map[string]any {
	return object{
		"apiVersion": TalosAPI, "kind": TalosKind, "metadata": s.metadata(s.talosName()),
		"spec": object{"roles": []any{Role}},
	}
}

// Secret is the access to the bucket.
func (s Spec) Secret(c Credentials) map[string]any {
	content := map[string]string{}

	for key, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": c.AccessKeyID, "AWS_SECRET_ACCESS_KEY": c.SecretAccessKey, "AWS_SESSION_TOKEN": c.SessionToken,
		caKey: s.Bucket.CA,
	} {
		if value != "" {
			content[key] = base64.StdEncoding.EncodeToString([]byte(value))
		}
	}

	data := object{}
	for key, value := range content {
		data[key] = value
	}

	metadata := s.metadata(s.secretName())
	metadata["annotations"] = object{contentAnnotation: digest(content)}

	return object{"apiVersion": coreAPI, "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": data}
}

func digest(content map[string]string) string {
	var text []byte
	for _, key := range slices.Sorted(maps.Keys(content)) {
		text = fmt.Appendf(text, "%d:%s%d:%s", len(key), key, len(content[key]), content[key])
	}

	sum := sha256.Sum256(text)

	return hex.EncodeToString(sum[:])
}

// CronJob runs talos-backup. It does not depend on the credentials, so that it can be rendered
// when they are not at hand: what the Secret lacks is not set in the pod.
func (s Spec) CronJob() map[string]any {
	labels := metav1.ObjectMeta{Labels: s.labels()}
	c := batchv1.CronJob{
		TypeMeta:   metav1.TypeMeta{APIVersion: batchAPI, Kind: "CronJob"},
		ObjectMeta: metav1.ObjectMeta{Name: s.Name, Namespace: s.Namespace, Labels: s.labels()},
		Spec: batchv1.CronJobSpec{
			Schedule: s.Schedule, Suspend: &s.Suspend,
			// Two snapshots at once would strain etcd.
			ConcurrencyPolicy:          batchv1.ForbidConcurrent,
			SuccessfulJobsHistoryLimit: new(int32(s.Successful)), FailedJobsHistoryLimit: new(int32(s.Failed)),
			JobTemplate: batchv1.JobTemplateSpec{ObjectMeta: labels, Spec: batchv1.JobSpec{
				BackoffLimit: new(int32(retries)),
				// A run that hangs would keep all later ones from beginning.
				ActiveDeadlineSeconds: new(seconds(s.RunTimeout)),
				Template:              corev1.PodTemplateSpec{ObjectMeta: labels, Spec: s.pod()},
			}},
		},
	}

	if s.TimeZone != "" {
		c.Spec.TimeZone = &s.TimeZone
	}

	if s.StartingDeadline > 0 {
		c.Spec.StartingDeadlineSeconds = new(seconds(s.StartingDeadline))
	}

	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&c)
	if err != nil {
		panic(err) // a type of the API
	}

	return withoutEmpty(content)
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }

// withoutEmpty takes out what types have and nobody set: an apply would own these fields.
func withoutEmpty(o object) object {
	for key, value := range o {
		switch value := value.(type) {
		case nil:
			delete(o, key)
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
			Name: container, Image: s.Image.Reference(), ImagePullPolicy: corev1.PullIfNotPresent,
			Command:    []string{"/talos-backup"},
			WorkingDir: workFolder, Env: s.environment(), Resources: s.Resources,
			// The end of the log is then in the status of a container that failed.
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
			VolumeMounts: []corev1.VolumeMount{{Name: "work", MountPath: workFolder},
				{Name: "talos", MountPath: talosMount, ReadOnly: true}},
		}},
		Volumes: []corev1.Volume{
			{Name: "work", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: "talos", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: s.talosName()}}},
		},
		NodeSelector: s.NodeSelector, Tolerations: s.Tolerations,
	}

	if s.Bucket.CA != "" {
		ca := &corev1.SecretVolumeSource{SecretName: s.secretName(), Items: []corev1.KeyToPath{{Key: caKey, Path: caKey}}}
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "ca", VolumeSource: corev1.VolumeSource{Secret: ca}})
		pod.Containers[0].VolumeMounts = append(pod.Containers[0].VolumeMounts,
			corev1.VolumeMount{Name: "ca", MountPath: caMount, ReadOnly: true})
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
	region, style, compress, plain, ca := s.Bucket.Region, "", "", "", ""

	if s.Bucket.Endpoint != "" {
		region = cmp.Or(region, DefaultRegion)
	}

	if s.Bucket.PathStyle {
		style = s.Image.pathStyle()
	}

	if s.Compress {
		compress = "true"
	}

	if s.Recipient == "" {
		plain = "true"
	}

	if s.Bucket.CA != "" {
		ca = caVariable
	}

	for _, v := range []corev1.EnvVar{
		{Name: "AWS_REGION", Value: region}, {Name: "CUSTOM_S3_ENDPOINT", Value: s.Bucket.Endpoint},
		{Name: "USE_PATH_STYLE", Value: style},
		{Name: "ENABLE_COMPRESSION", Value: compress}, {Name: "DISABLE_ENCRYPTION", Value: plain},
		{Name: "AGE_X25519_PUBLIC_KEY", Value: s.Recipient},
		{Name: "SSL_CERT_DIR", Value: ca},
	} {
		if v.Value != "" {
			variables = append(variables, v)
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

// JobNow is a run on demand of a CronJob that the API has, as `kubectl create job --from` makes it
// (kubectl 0.36, createJobFromCronJob): the CronJob counts it among its own. wish tells this run
// from others; the same wish gives the same name.
func (s Spec) JobNow(cronJob map[string]any, wish string) map[string]any {
	template := nested(cronJob, "spec", "jobTemplate")
	sum := sha256.Sum256([]byte(wish))

	return object{
		"apiVersion": batchAPI, "kind": "Job",
		"metadata": object{
			"name": s.Name + "-now-" + hex.EncodeToString(sum[:3]), "namespace": s.Namespace,
			"labels":      nested(template, "metadata", "labels"),
			"annotations": object{"cronjob.kubernetes.io/instantiate": "manual"},
			"ownerReferences": []any{object{
				"apiVersion": batchAPI, "kind": "CronJob", "name": s.Name, "uid": nested(cronJob, "metadata")["uid"],
				"controller": true,
			}},
		},
		"spec": template["spec"],
	}
}
