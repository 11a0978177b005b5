# The cluster handle: an output of the stack that creates the control plane, or talosop_control_plane.prod.cluster.
variable "cluster" {
  type      = any
  sensitive = true
}

variable "kubernetes_version" {
  type = string
}

# The key of the bucket is in neither state nor plan. The default is the key of the provider, or the one that the AWS SDK finds.
variable "backup_key" {
  type      = object({ id = string, secret = string })
  ephemeral = true
}

# A daily snapshot, if Terraform runs on a schedule, and one after each Kubernetes upgrade.
resource "talosop_etcd_backup" "prod" {
  cluster = var.cluster

  s3 = {
    bucket               = "prod-backups"
    region               = "eu-central-1"
    prefix               = "talos"
    access_key_id_wo     = var.backup_key.id
    secret_access_key_wo = var.backup_key.secret
  }

  # Create a key pair with `age-keygen`. Do not store the secret key with this state.
  encryption      = { recipients = ["age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"] }
  compression     = "zstd"
  include_secrets = true

  schedule = "0 3 * * *"
  triggers = { kubernetes = var.kubernetes_version }
  retain   = { count = 14, min_age = "168h" }
}

variable "minio_ca" {
  description = "PEM certificate of the CA that signed the certificate of the server."
  type        = string
}

# On an S3-compatible server, with the credentials of the provider.
resource "talosop_etcd_backup" "minio" {
  cluster = var.cluster

  s3 = {
    bucket   = "etcd"
    endpoint = "https://minio.example.org:9000"
    ca       = var.minio_ca
  }
}

# In a local folder.
resource "talosop_etcd_backup" "local" {
  cluster = var.cluster
  file    = { path = "./backups" }
}
