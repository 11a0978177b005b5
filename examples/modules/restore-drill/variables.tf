variable "cluster" {
  description = "The cluster whose backups are tested: its name, endpoint, mode and networks, as in talosop_cluster. The drill does not connect to it."
  type = object({
    name          = string
    endpoint      = string
    mode          = optional(string, "metal")
    pod_cidrs     = optional(list(string))
    service_cidrs = optional(list(string))
    dns_domain    = optional(string)
  })
}

variable "secrets" {
  description = "Secrets bundle of the cluster: bundle of talosop_secrets, or the file of include_secrets."
  type        = string
  sensitive   = true
}

variable "backups" {
  description = "Where talosop_etcd_backup keeps the snapshots: the arguments s3 or file of that resource, without credentials."
  type = object({
    s3 = optional(object({
      bucket     = string
      prefix     = optional(string)
      region     = optional(string)
      endpoint   = optional(string)
      ca         = optional(string)
      path_style = optional(bool)
      profile    = optional(string)
    }))
    file = optional(object({ path = string }))
  })
  default = { file = { path = "backups" } }
}

variable "identities" {
  description = "age secret keys that decrypt the snapshots."
  type        = list(string)
  default     = null
  ephemeral   = true
}

variable "host" {
  description = "Where the pods run on the host cluster of the provider: the argument host of talosop_cluster."
  type        = any
  default     = { namespace = "restore-drill", create_namespace = true }
}

variable "name" {
  description = "Name of the restored cluster."
  type        = string
  default     = "restore-drill"
}

variable "control_planes" {
  description = "Number of control planes. Use as many as the cluster has."
  type        = number
  default     = 3
}

variable "versions" {
  description = "Versions of Talos and Kubernetes. Default: those that the snapshot was taken with."
  type        = object({ talos = optional(string), kubernetes = optional(string) })
  default     = {}
}

variable "cni" {
  description = "Network plugin, as in the argument of talosop_cluster: null for Flannel."
  type        = object({ name = string })
  default     = null
}

variable "config_patches" {
  description = "Patches for the pods, as YAML, such as a registry mirror. Do not pass patches for the hardware of the cluster."
  type        = list(string)
  default     = []
}

variable "scratch" {
  description = "Folder for the snapshots of the restored cluster, on the computer that runs Terraform. Not a folder of backups."
  type        = string
  default     = ".restore-drill"

  validation {
    condition     = var.backups.file == null ? true : abspath(var.scratch) != abspath(var.backups.file.path)
    error_message = "The folder of the backups would get snapshots of the restored cluster."
  }
}

variable "recipients" {
  description = "age public keys that encrypt the snapshots in scratch. Default: no encryption, so that they contain every Secret."
  type        = list(string)
  default     = null
}

variable "transient" {
  description = "Resources of which a restored cluster may have fewer objects: what belongs to nodes and running pods."
  type        = list(string)
  default = [
    "csinodes", "endpoints", "endpointslices", "events", "jobs", "leases", "pods", "volumeattachments",
    "ciliumendpoints.cilium.io", "ciliumidentities.cilium.io", "ciliumnodes.cilium.io",
  ]
}

variable "limits" {
  description = "Limits that the drill must meet: the age of the newest snapshot, and the duration of the restore. Default: none."
  type        = object({ rpo_seconds = optional(number), rto_seconds = optional(number) })
  default     = {}
}
