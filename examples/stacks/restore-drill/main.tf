# A restore drill for a schedule: drill.sh applies it, keeps the report, and destroys it. Run it in a separate state, because
# nothing of it is part of the cluster.

terraform {
  required_version = ">= 1.11"
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

# The Kubernetes cluster that runs the pods. Its network plugin must enforce policies, which isolate the drill.
provider "talosop" {
  progress_file = "${path.root}/progress.jsonl"
  host          = { kubeconfig_path = pathexpand(var.kubeconfig) }
}

variable "kubeconfig" {
  description = "Kubeconfig file of the host cluster."
  type        = string
  default     = "~/.kube/config"
}

variable "cluster" {
  description = "The cluster whose backups are tested, as in the module: name, endpoint, and networks unless they are the defaults."
  type        = any
}

variable "secrets" {
  description = "Secrets bundle of the cluster."
  type        = string
  sensitive   = true
}

variable "backups" {
  description = "Where the snapshots are: s3 or file, as in talosop_etcd_backup."
  type        = any
  default     = { file = { path = "backups" } }
}

variable "identities" {
  description = "age secret keys that decrypt the snapshots."
  type        = list(string)
  default     = null
  ephemeral   = true
}

variable "namespace" {
  description = "Namespace of the pods in the host cluster. talosop creates and deletes it."
  type        = string
  default     = "restore-drill"
}

variable "control_planes" {
  description = "Number of control planes. Use as many as the cluster has."
  type        = number
  default     = 3
}

module "drill" {
  source = "../../modules/restore-drill"

  cluster        = var.cluster
  secrets        = var.secrets
  backups        = var.backups
  identities     = var.identities
  control_planes = var.control_planes

  host = {
    namespace        = var.namespace
    create_namespace = true
    pod              = { resources = { requests = { cpu = "250m", memory = "1Gi" } } }
  }

  # A backup every day, and a cluster that works after half an hour.
  limits = { rpo_seconds = 25 * 3600, rto_seconds = 1800 }
}

output "report" {
  value = {
    snapshot    = module.drill.snapshot
    rpo_seconds = module.drill.rpo_seconds
    rto_seconds = module.drill.rto_seconds
    missing     = module.drill.missing
    objects     = module.drill.objects
  }
}
