# The key of the pods is in neither state nor plan. It only needs permission to put objects under key_prefix.
variable "backup_key" {
  type      = object({ id = string, secret = string })
  ephemeral = true
}

# Talos lets pods of a namespace take snapshots if the configuration of every control plane allows it.
locals {
  backups_from_kubernetes = yamlencode({
    machine = { features = { kubernetesTalosAPIAccess = {
      enabled                     = true
      allowedRoles                = ["os:etcd:backup"]
      allowedKubernetesNamespaces = ["talosop-backup"]
    } } }
  })
}

resource "talosop_secrets" "prod" {}

resource "talosop_control_plane" "prod" {
  mode               = "metal"
  name               = "prod"
  endpoint           = "https://10.0.0.10:6443"
  secrets            = talosop_secrets.prod.bundle
  talos_version      = "v1.14.1"
  kubernetes_version = "v1.37.0"
  install            = { disk = "/dev/sda" }
  config_patches     = [local.backups_from_kubernetes]

  machines = {
    cp-1 = { address = "10.0.0.11" }
    cp-2 = { address = "10.0.0.12" }
    cp-3 = { address = "10.0.0.13" }
  }
}

resource "talosop_etcd_backup_schedule" "nightly" {
  cluster   = talosop_control_plane.prod.cluster
  name      = "nightly"
  schedule  = "0 3 * * *"
  time_zone = "Europe/Berlin"

  s3 = {
    bucket                 = "prod-backups"
    region                 = "eu-central-1"
    prefix                 = "talos"
    access_key_id_wo       = var.backup_key.id
    secret_access_key_wo   = var.backup_key.secret
    credentials_wo_version = "1" # change this to update the key in the cluster
  }

  # Create a key pair with `age-keygen`. Do not store the secret key with this state.
  encryption  = { recipients = ["age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"] }
  compression = "zstd"

  # An apply deletes older snapshots, with the credentials of the provider.
  retain = { count = 30 }

  # Take a first snapshot immediately, to test the setup.
  run_now = "first"
}

check "backups" {
  assert {
    condition     = try(timecmp(timeadd(talosop_etcd_backup_schedule.nightly.last_success, "36h"), plantimestamp()) > 0, false)
    error_message = "No backup succeeded for 36 hours. The last failure: ${coalesce(talosop_etcd_backup_schedule.nightly.last_failure, "none")}"
  }
}
