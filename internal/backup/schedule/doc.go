// Package schedule renders a CronJob of talos-backup (github.com/siderolabs/talos-backup), which takes snapshots of
// etcd without Terraform. With it come the Talos ServiceAccount that lets it take snapshots, the Secret with the
// access to the bucket, and their namespace. It reads them back, too. It is pure.
//
// # What talos-backup does
//
// Facts of talos-backup are of its commit 0b3984d (after v0.1.0-beta.3), where no other is named:
//
//   - All settings are environment variables (pkg/config/service.go). It takes one age X25519 recipient
//     (pkg/encryption/encryption.go), and fails without one unless DISABLE_ENCRYPTION=true. ENABLE_COMPRESSION came
//     after v0.1.0-beta.3.
//   - It reads Talos's credentials from /var/run/secrets/talos.dev, where Talos's Secret is mounted
//     (cronjob.sample.yaml; Talos 1.13, constants.ServiceAccountMountPath).
//   - It writes the snapshot to the working directory, compresses and encrypts it there, and uploads it as
//     S3_PREFIX/CLUSTER_NAME-TIME.snap, with .zst and .age (pkg/talos/talos.go, pkg/compression, pkg/encryption,
//     pkg/s3/s3.go). TIME is RFC 3339 in UTC: the image has no TZ and is made from scratch (Dockerfile).
//   - It deletes nothing in the bucket (pkg/s3/s3.go); its README leaves that to lifecycle rules (pull request 47).
//   - It runs as any user and writes to its working directory alone (cronjob.sample.yaml), so that its pods conform to
//     the PodSecurity profile "restricted".
//
// # What Talos does
//
// Talos 1.13, internal/app/machined/pkg/controllers/kubeaccess/serviceaccount/crd_controller.go: for each
// serviceaccounts.talos.dev of an allowed namespace with allowed roles Talos makes a Secret of the same name with a
// talosconfig whose certificate is valid for six hours and renewed an hour before its end; no other client may make the
// Secret. A ServiceAccount that is not allowed gets status.failureReason and no Secret. The definition is there from
// when the feature kubernetesTalosAPIAccess is on (k8s/manifest.go, 13-talos-service-account-crd).
package schedule
