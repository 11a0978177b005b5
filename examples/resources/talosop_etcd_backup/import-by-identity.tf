import {
  to = talosop_etcd_backup.prod
  identity = {
    cluster       = "prod" # its secrets are in `clusters` of the provider
    control_plane = ["10.0.0.11", "10.0.0.12", "10.0.0.13"]
    bucket        = "prod-backups"
    region        = "eu-central-1"
    prefix        = "talos"
    key           = "talos/prod/etcd-snapshot-2026-01-02T03-00-00Z-0123456789abcdef-k3jq7x.db.zst.age"
    recipients    = ["age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"]
  }
}
