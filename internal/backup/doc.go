// Package backup stores snapshots of etcd. A snapshot is the database of one member followed by its SHA-256, as
// etcd streams it. A stream that ends early looks complete without that sum (Talos 1.13, EtcdSnapshot ends without
// an error when reading fails half way), so a snapshot with an unverified sum is never stored.
//
// An Archive streams a snapshot through that check, a check of all pages of the database, zstd and age into a
// store, without holding or copying it. It completes the object only when both checks found nothing. The stores
// are in backup/file and backup/s3.
package backup
