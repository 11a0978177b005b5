package schedule

import (
	"path"
	"regexp"
	"strings"
	"time"

	"filippo.io/age"
	corev1 "k8s.io/api/core/v1"
)

// The image that supports all of a Spec. v0.1.0-beta.3, the newest release, cannot compress, and some servers
// refuse its S3 client (talos-backup commit 0b3984d). This is a build of the main branch, as every commit has one
// (talos-backup issue 52), and the one that github.com/hcloud-k8s/terraform-hcloud-kubernetes runs by default
// (variables.tf, talos_backup_version).
const (
	DefaultRepository = "ghcr.io/siderolabs/talos-backup"
	DefaultTag        = "v0.1.0-beta.3-3-g38dad7c"
)

// Role is the role that Talos has to grant.
const Role = "os:etcd:backup"

// LongestName is how long the name of a schedule may be: Kubernetes adds eleven characters for the names of Jobs
// (Kubernetes 1.36, ValidateCronJobCreate).
const LongestName = 52

// Spec is a schedule.
type Spec struct {
	Namespace, Name string
	// Cluster and Mark are in the keys; Mark distinguishes the cluster from all others of its name.
	Cluster, Mark string
	// Schedule is a cron expression in TimeZone or, when that is empty, in the zone of the kube-controller-manager
	// (batch/v1 CronJobSpec.timeZone), taken to be UTC.
	Schedule, TimeZone string
	Suspend            bool
	Bucket             Bucket
	// Recipient of age; empty for no encryption.
	Recipient string
	Compress  bool
	Image     Image
	// Successful and Failed are how many Jobs of each kind are kept.
	Successful, Failed int64
	// StartingDeadline is how late a run may begin; 0 for any time. RunTimeout ends a run.
	StartingDeadline, RunTimeout time.Duration
	Resources                    corev1.ResourceRequirements
	NodeSelector                 map[string]string
	Tolerations                  []corev1.Toleration
}

// Bucket says where the snapshots go, as seen from the cluster.
type Bucket struct {
	Name, Region, Endpoint, Prefix string
	PathStyle                      bool
	// CA is PEM that is trusted besides the certificates of the image.
	CA string
}

// Image of talos-backup.
type Image struct {
	Repository, Tag string
	// PullSecret names a Secret of the namespace; empty for none.
	PullSecret string
}

// Credentials of the bucket; the zero value leaves the pod to its own identity.
type Credentials struct{ AccessKeyID, SecretAccessKey, SessionToken string }

// String hides the credentials.
func (Credentials) String() string { return "credentials" }

// GoString hides the credentials from %#v.
func (Credentials) GoString() string { return "credentials" }

// old matches v0.1.0-beta.3 and what was built before it. No build after it and no tag of another image does.
var old = regexp.MustCompile(`^v0\.1\.0-(((alpha\.\d+|beta\.[0-2])(-|@|$))|beta\.3(@|$))`)

// Compresses reports whether the image knows ENABLE_COMPRESSION. Others store the snapshot as it is.
func (i Image) Compresses() bool { return !old.MatchString(i.Tag) }

// Folder is what the keys of a schedule's snapshots begin with, without the slash behind it. No other schedule and no
// talosop_etcd_backup has it.
func (s Spec) Folder() string { return path.Join(s.Bucket.Prefix, s.Cluster, s.Name) }

// stem is the prefix of the snapshots' names.
func (s Spec) stem() string { return s.Cluster + "-" + s.Mark }

// KeyPrefix is what the keys of the snapshots begin with, up to their time.
func (s Spec) KeyPrefix() string { return s.Folder() + "/" + s.stem() + "-" }

// TimeOf reads when a snapshot of this schedule was begun from its key; ok is false for the key of anything else.
func (s Spec) TimeOf(key string) (at time.Time, ok bool) {
	rest, ok := strings.CutPrefix(key, s.KeyPrefix())
	if !ok {
		return time.Time{}, false
	}

	text, ending, ok := strings.Cut(rest, ".snap")
	if !ok || ending != "" && ending != ".zst" && ending != ".age" && ending != ".zst.age" {
		return time.Time{}, false
	}

	at, err := time.Parse(time.RFC3339, text)

	return at, err == nil
}

// IsRecipient reports whether a text is a key that talos-backup encrypts for: X25519 ones alone
// (pkg/encryption/encryption.go).
func IsRecipient(text string) bool {
	_, err := age.ParseX25519Recipient(text)

	return err == nil
}
