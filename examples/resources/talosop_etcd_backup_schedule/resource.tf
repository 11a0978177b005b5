# The key that the pods use is in neither state nor plan. It need only be allowed to put objects below key_prefix.
variable "backup_key" {
  type      = object({ id = string, secret = string })
  ephemeral = true
}

# Talos lets pods of a namespace take snapshots once the configuration of every control plane allows it.
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
  talos_version      = "v1.13.0"
  kubernetes_version = "v1.35.2"
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
    credentials_wo_version = "1" # another value brings another key into the cluster
  }

  # `age-keygen` makes a pair of keys. Keep the secret one where this state is not.
  encryption  = { recipients = ["age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"] }
  compression = "zstd"

  # Deleted by an apply, with the credentials of the provider.
  retain = { count = 30 }

  # A first snapshot at once, which shows that all of it works.
  run_now = "first"
}

check "backups" {
  assert {
    condition     = try(timecmp(timeadd(talosop_etcd_backup_schedule.nightly.last_success, "36h"), plantimestamp()) > 0, false)
    error_message = "No backup succeeded for 36 hours. The last failure: ${coalesce(talosop_etcd_backup_schedule.nightly.last_failure, "none")}"
  }
}
