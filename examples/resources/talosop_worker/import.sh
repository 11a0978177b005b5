terraform import talosop_worker.batch \
  '{"secrets": "secrets.yaml", "name": "batch", "control_plane": {"cp-1": "10.0.0.11"}, "machines": {"batch-1": "10.0.0.21"}}'
