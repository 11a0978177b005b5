// Package etcdbackup is talosop_etcd_backup, a snapshot of etcd that was verified before it is in state, and the data
// source talosop_etcd_backups, which lists those of a store.
package etcdbackup
