// Package schedule renders the objects of a cluster that take snapshots of its etcd while
// nobody runs Terraform: a CronJob of talos-backup (github.com/siderolabs/talos-backup), the
// Talos ServiceAccount that lets it take snapshots, the Secret with the access to the bucket,
// and their namespace. It reads them back, too. It is pure.
//
// # What talos-backup does
//
// Facts of talos-backup are of its commit 0b3984d (after v0.1.0-beta.3), where no other is
// named:
//
//   - All settings are environment variables (pkg/config/service.go). One age X25519 recipient
//     can be given, not more (pkg/encryption/encryption.go), and without DISABLE_ENCRYPTION=true
//     a run fails that has none. ENABLE_COMPRESSION came after v0.1.0-beta.3.
//   - Talos's credentials are read from /var/run/secrets/talos.dev, where Talos's Secret is
//     mounted (cronjob.sample.yaml; Talos 1.13, constants.ServiceAccountMountPath).
//   - The snapshot is written to the working directory, compressed and encrypted there, and
//     uploaded as S3_PREFIX/CLUSTER_NAME-TIME.snap, with .zst and .age (pkg/talos/talos.go,
//     pkg/compression, pkg/encryption, pkg/s3/s3.go). TIME is RFC 3339 in the time zone of the
//     container, which is UTC: the image has no TZ and is made from scratch (Dockerfile).
//   - Nothing is ever deleted in the bucket (pkg/s3/s3.go); its README leaves that to lifecycle
//     rules (talos-backup pull request 47).
//   - It runs as any user and writes to its working directory alone (cronjob.sample.yaml), so
//     that its pods conform to the PodSecurity profile "restricted".
//
// # What Talos does
//
// Talos 1.13, internal/app/machined/pkg/controllers/kubeaccess/serviceaccount/crd_controller.go:
// for each serviceaccounts.talos.dev of an allowed namespace with allowed roles Talos makes a Secret
// of the same name with a talosconfig whose certificate is valid for six hours and renewed an hour
// before its end; the Secret must not be made by anybody else. A ServiceAccount that is not allowed
// gets status.failureReason and no Secret. The definition is there from when the feature
// kubernetesTalosAPIAccess is on (k8s/manifest.go, 13-talos-service-account-crd).
package schedule
