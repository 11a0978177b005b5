// Package etcdbackup is talosop_etcd_backup, a snapshot of etcd that is verified before it is in state, and the data
// source talosop_etcd_backups, which lists the snapshots of a store.
package etcdbackup
