terraform import talosop_etcd_backup_schedule.nightly \
  '{"secrets": "secrets.yaml", "control_plane": {"cp-1": "10.0.0.11", "cp-2": "10.0.0.12", "cp-3": "10.0.0.13"},
    "namespace": "talosop-backup", "name": "nightly"}'
