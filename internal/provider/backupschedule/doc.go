// Package backupschedule is talosop_etcd_backup_schedule: a CronJob of talos-backup with all that it needs in the
// cluster, what became of its runs, and the retention of what it stored.
package backupschedule
