// Package etcdbackup is talosop_etcd_backup, a verified snapshot of etcd, and the data source talosop_etcd_backups,
// which lists the snapshots of a store.
package etcdbackup
