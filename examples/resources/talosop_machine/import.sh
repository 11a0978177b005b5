# control_plane lists all control planes. A machine in this list becomes a control plane, any other a worker.
terraform import 'talosop_machine.worker["w-1"]' \
  '{"secrets": "secrets.yaml", "control_plane": {"cp-1": "10.0.0.11", "cp-2": "10.0.0.12", "cp-3": "10.0.0.13"},
    "machines": {"w-1": "10.0.0.21"}}'
