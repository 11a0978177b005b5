// Package backup keeps snapshots of etcd. A snapshot is the database of one member
// followed by its SHA-256, as etcd streams it; a stream that ends early looks complete
// without that sum (Talos 1.13, EtcdSnapshot ends without an error when reading fails half
// way), so nothing is kept whose sum was not verified.
package backup
