list "talosop_etcd_backup" "prod" {
  provider         = talosop
  include_resource = true
  limit            = 10 # the newest

  config {
    cluster       = "prod"
    control_plane = ["10.0.0.11", "10.0.0.12", "10.0.0.13"]
    s3            = { bucket = "prod-backups", region = "eu-central-1", prefix = "talos" }
    recipients    = ["age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"]
  }
}
