// Package backup keeps snapshots of etcd. A snapshot is the database of one member
// followed by its SHA-256, as etcd streams it; a stream that ends early looks complete
// without that sum (Talos 1.13, EtcdSnapshot ends without an error when reading fails half
// way), so nothing is kept whose sum was not verified.
//
// An Archive streams a snapshot through that check, a check of all pages of the database,
// zstd and age into a store, without holding or copying it, and tells the store that the
// stream has ended only when both have found nothing. The stores are in backup/file and
// backup/s3.
package backup
