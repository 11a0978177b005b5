package schedule

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
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
	return object{"name": name, "namespace": s.Namespace, "labels": s.labels()}
}

func (s Spec) labels() object {
	return object{managedBy: manager, "app.kubernetes.io/name": container, Label: s.Name}
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
		"AWS_ACCESS_KEY_ID": c.AccessKeyID, "AWS_SECRET_ACCESS_KEY": c.SecretAccessKey, "AWS_SESSION_TOKEN": c.SessionToken, caKey: s.Bucket.CA,
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
	spec := object{
		"schedule": s.Schedule, "suspend": s.Suspend,
		// Two snapshots at once would strain etcd.
		"concurrencyPolicy":          "Forbid",
		"successfulJobsHistoryLimit": s.Successful, "failedJobsHistoryLimit": s.Failed,
		"jobTemplate": object{
			"metadata": object{"labels": s.labels()},
			"spec":     s.job(),
		},
	}

	if s.TimeZone != "" {
		spec["timeZone"] = s.TimeZone
	}

	if s.StartingDeadline > 0 {
		spec["startingDeadlineSeconds"] = seconds(s.StartingDeadline)
	}

	return object{"apiVersion": batchAPI, "kind": "CronJob", "metadata": s.metadata(s.Name), "spec": spec}
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }

func (s Spec) job() object {
	return object{
		"backoffLimit": int64(retries),
		// A run that hangs would keep all later ones from beginning.
		"activeDeadlineSeconds": seconds(s.RunTimeout),
		"template": object{
			"metadata": object{"labels": s.labels()},
			"spec":     s.pod(),
		},
	}
}

func (s Spec) pod() object {
	pod := object{
		// A pod that failed stays, and can be asked why, unlike with OnFailure.
		"restartPolicy":                "Never",
		"automountServiceAccountToken": false,
		"enableServiceLinks":           false,
		"securityContext": object{
			"runAsNonRoot": true, "runAsUser": int64(user), "runAsGroup": int64(user), "seccompProfile": object{"type": "RuntimeDefault"},
		},
		"containers": []any{s.container()},
		"volumes":    s.volumes(),
	}

	if s.Image.PullSecret != "" {
		pod["imagePullSecrets"] = []any{object{"name": s.Image.PullSecret}}
	}

	if len(s.NodeSelector) > 0 {
		pod["nodeSelector"] = texts(s.NodeSelector)
	}

	if tolerations := s.tolerations(); len(tolerations) > 0 {
		pod["tolerations"] = tolerations
	}

	return pod
}

func (s Spec) container() object {
	c := object{
		"name": container, "image": s.Image.Reference(), "imagePullPolicy": "IfNotPresent", "command": []any{"/talos-backup"},
		"workingDir": workFolder, "env": s.environment(),
		// The end of the log is then in the status of a container that failed.
		"terminationMessagePolicy": "FallbackToLogsOnError",
		"securityContext": object{
			"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": object{"drop": []any{"ALL"}},
		},
		"volumeMounts": s.mounts(),
	}

	resources := object{}
	if len(s.Requests) > 0 {
		resources["requests"] = texts(s.Requests)
	}

	if len(s.Limits) > 0 {
		resources["limits"] = texts(s.Limits)
	}

	if len(resources) > 0 {
		c["resources"] = resources
	}

	return c
}

func (s Spec) volumes() []any {
	volumes := []any{
		object{"name": "work", "emptyDir": object{}},
		object{"name": "talos", "secret": object{"secretName": s.talosName()}},
	}

	if s.Bucket.CA != "" {
		volumes = append(volumes, object{"name": "ca", "secret": object{"secretName": s.secretName(), "items": []any{object{"key": caKey, "path": caKey}}}})
	}

	return volumes
}

func (s Spec) mounts() []any {
	mounts := []any{
		object{"name": "work", "mountPath": workFolder},
		object{"name": "talos", "mountPath": talosMount, "readOnly": true},
	}

	if s.Bucket.CA != "" {
		mounts = append(mounts, object{"name": "ca", "mountPath": caMount, "readOnly": true})
	}

	return mounts
}

func (s Spec) environment() []any {
	variables := []any{
		object{"name": "BUCKET", "value": s.Bucket.Name},
		object{"name": "CLUSTER_NAME", "value": s.stem()},
		object{"name": "S3_PREFIX", "value": s.Folder()},
	}

	add := func(name, value string) {
		if value != "" {
			variables = append(variables, object{"name": name, "value": value})
		}
	}

	if s.Bucket.Endpoint != "" {
		add("AWS_REGION", cmp.Or(s.Bucket.Region, DefaultRegion))
	} else {
		add("AWS_REGION", s.Bucket.Region)
	}

	add("CUSTOM_S3_ENDPOINT", s.Bucket.Endpoint)

	if s.Bucket.PathStyle {
		add("USE_PATH_STYLE", s.Image.pathStyle())
	}

	if s.Compress {
		add("ENABLE_COMPRESSION", "true")
	}

	if s.Recipient == "" {
		add("DISABLE_ENCRYPTION", "true")
	}

	add("AGE_X25519_PUBLIC_KEY", s.Recipient)

	if s.Bucket.CA != "" {
		add("SSL_CERT_DIR", caVariable)
	}

	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"} {
		variables = append(variables, object{"name": name, "valueFrom": object{"secretKeyRef": object{
			"name": s.secretName(), "key": name, "optional": true,
		}}})
	}

	return variables
}

func (s Spec) tolerations() []any {
	var tolerations []any

	for _, t := range s.Tolerations {
		toleration := object{}

		for field, value := range map[string]string{"key": t.Key, "operator": t.Operator, "value": t.Value, "effect": t.Effect} {
			if value != "" {
				toleration[field] = value
			}
		}

		if t.Seconds != nil {
			toleration["tolerationSeconds"] = *t.Seconds
		}

		tolerations = append(tolerations, toleration)
	}

	return tolerations
}

func texts(m map[string]string) object {
	out := object{}
	for key, value := range m {
		out[key] = value
	}

	return out
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
				"apiVersion": batchAPI, "kind": "CronJob", "name": s.Name, "uid": nested(cronJob, "metadata")["uid"], "controller": true,
			}},
		},
		"spec": template["spec"],
	}
}

// WasNow reports whether a name is that of a run on demand.
func (s Spec) WasNow(job string) bool { return strings.HasPrefix(job, s.Name+"-now-") }
