# A rehearsal of an upgrade: rehearse.sh copies the cluster as it is, applies the change to the copy, and destroys it.

terraform {
  required_version = ">= 1.11"
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

# The Kubernetes cluster that runs the pods. Its network plugin must enforce policies, which isolate the copy.
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
  description = "The cluster to copy, as in the module: name, endpoint, and networks unless they are the defaults."
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

variable "config_patches" {
  description = "The patches of the cluster."
  type        = list(string)
  default     = []
}

variable "change" {
  description = "Whether the change is applied. rehearse.sh restores first without it."
  type        = bool
  default     = false
}

variable "planned" {
  description = "The change to rehearse: versions, system extensions, patches and addons."
  type        = any
  default     = {}
}

variable "snapshot" {
  description = "Key of the restored snapshot, which rehearse.sh sets for the change."
  type        = string
  default     = null
}

variable "namespace" {
  description = "Namespace of the pods in the host cluster. talosop creates and deletes it."
  type        = string
  default     = "rehearsal"
}

variable "control_planes" {
  description = "Number of control planes of the copy."
  type        = number
  default     = 3
}

variable "workers" {
  description = "Number of workers of the copy. With workers, the workloads of the snapshot run."
  type        = number
  default     = 0
}

variable "timeout" {
  description = "How long the restore and the change may take, each."
  type        = string
  default     = "30m"
}

module "rehearsal" {
  source = "../../modules/rehearsal"

  cluster        = var.cluster
  secrets        = var.secrets
  backups        = var.backups
  snapshot       = var.snapshot
  identities     = var.identities
  config_patches = var.config_patches
  change         = var.change
  planned        = var.planned
  control_planes = var.control_planes
  workers        = var.workers
  timeout        = var.timeout
  host           = { namespace = var.namespace, create_namespace = true }
}

output "snapshot" {
  value = module.rehearsal.snapshot
}

output "report" {
  value = {
    skipped    = module.rehearsal.skipped
    operations = module.rehearsal.operations
    conditions = module.rehearsal.conditions
    problems   = module.rehearsal.problems
  }
}
