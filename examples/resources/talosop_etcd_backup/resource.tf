# The handle of the cluster: an output of the stack that made the control plane, or talosop_control_plane.prod.cluster.
variable "cluster" {
  type      = any
  sensitive = true
}

variable "kubernetes_version" {
  type = string
}

# The key of the bucket is in neither state nor plan. Left out, that of the provider is used, or what the AWS SDK finds.
variable "backup_key" {
  type      = object({ id = string, secret = string })
  ephemeral = true
}

# A snapshot a day, for those who run Terraform on a timer, and one after each upgrade of Kubernetes.
resource "talosop_etcd_backup" "prod" {
  cluster = var.cluster

  s3 = {
    bucket               = "prod-backups"
    region               = "eu-central-1"
    prefix               = "talos"
    access_key_id_wo     = var.backup_key.id
    secret_access_key_wo = var.backup_key.secret
  }

  # `age-keygen` makes a pair of keys. Keep the secret one where this state is not.
  encryption      = { recipients = ["age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"] }
  compression     = "zstd"
  include_secrets = true

  schedule = "0 3 * * *"
  triggers = { kubernetes = var.kubernetes_version }
  retain   = { count = 14, min_age = "168h" }
}

variable "minio_ca" {
  description = "Certificate of the authority that signed that of the server, in PEM."
  type        = string
}

# On a server that is not AWS, with the credentials of the provider.
resource "talosop_etcd_backup" "minio" {
  cluster = var.cluster

  s3 = {
    bucket   = "etcd"
    endpoint = "https://minio.example.org:9000"
    ca       = var.minio_ca
  }
}

# In a folder of this computer.
resource "talosop_etcd_backup" "local" {
  cluster = var.cluster
  file    = { path = "./backups" }
}
