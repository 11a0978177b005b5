variable "cluster" {
  description = "The cluster to copy: its name, endpoint, mode and networks, as in talosop_cluster. The rehearsal does not connect to it."
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

variable "snapshot" {
  description = "Key of the restored snapshot, once it is restored: the output snapshot. Default: the newest."
  type        = string
  default     = null
}

variable "identities" {
  description = "age secret keys that decrypt the snapshots."
  type        = list(string)
  default     = null
  ephemeral   = true
}

variable "config_patches" {
  description = "The patches of the cluster, as YAML. What is bound to its machines is skipped and listed."
  type        = list(string)
  default     = []
}

variable "change" {
  description = "Whether `planned` is applied. Restore first without it, then apply the change."
  type        = bool
  default     = false
}

variable "planned" {
  description = "The change: new versions, system extensions of the new image, patches and addons. Default: none."
  type = object({
    talos          = optional(string)
    kubernetes     = optional(string)
    extensions     = optional(list(string))
    config_patches = optional(list(string), [])
    addons = optional(map(object({
      namespace  = string
      chart      = string
      repository = optional(string)
      version    = optional(string)
      values     = optional(list(string))
    })), {})
  })
  default  = {}
  nullable = false
}

variable "health_checks" {
  description = "The health checks of the cluster, as in the argument of talosop_cluster."
  type        = any
  default     = null
}

variable "timeout" {
  description = "How long the restore and the change may take, each."
  type        = string
  default     = "30m"
}

variable "host" {
  description = "Where the pods run on the host cluster of the provider: the argument host of talosop_cluster."
  type        = any
  default     = { namespace = "rehearsal", create_namespace = true }
}

variable "name" {
  description = "Name of the copy."
  type        = string
  default     = "rehearsal"
}

variable "control_planes" {
  description = "Number of control planes."
  type        = number
  default     = 3
}

variable "workers" {
  description = "Number of workers. With workers, the workloads of the snapshot run, and act on the systems that they manage. Without, `problems` has no pods."
  type        = number
  default     = 0
}

variable "cni" {
  description = "Network plugin, as in the argument of talosop_cluster: null for Flannel."
  type        = object({ name = string })
  default     = null
}
