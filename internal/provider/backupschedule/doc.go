// Package backupschedule is talosop_etcd_backup_schedule: a CronJob of talos-backup with all its objects in the
// cluster, the results of its runs, and the retention of its snapshots.
package backupschedule
