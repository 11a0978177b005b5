# The id contains the snapshot and the secrets. The import reads everything else from the metadata of the snapshot and the machines.
import {
  to = talosop_etcd_backup.prod
  id = jsonencode({
    secrets       = "secrets.yaml"
    control_plane = { cp-1 = "10.0.0.11", cp-2 = "10.0.0.12", cp-3 = "10.0.0.13" } # list all control planes, for the handle
    s3            = { bucket = "prod-backups", region = "eu-central-1", prefix = "talos" }
    key           = "talos/prod/etcd-snapshot-2026-01-02T03-00-00Z-0123456789abcdef-k3jq7x.db.zst.age"
    recipients    = ["age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"]
  })
}
