terraform import talosop_worker.batch \
  '{"secrets": "secrets.yaml", "name": "batch", "control_plane": {"cp-1": "10.0.0.11", "cp-2": "10.0.0.12", "cp-3": "10.0.0.13"},
    "machines": {"batch-1": "10.0.0.21", "batch-2": "10.0.0.22"}}'
