variable "name" {
  description = "Name of the cluster."
  type        = string
}

variable "endpoint" {
  description = "URL of the Kubernetes API at a load balancer, a DNS name or the first control plane, with port 6443. Not with virtual_ip."
  type        = string
  default     = null
}

variable "virtual_ip" {
  description = "Virtual IP that the control planes share, and its network interface."
  type        = object({ address = string, link = string })
  default     = null

  validation {
    condition     = (var.virtual_ip == null) != (var.endpoint == null)
    error_message = "Set either endpoint or virtual_ip."
  }
}

variable "versions" {
  description = "Versions of Talos and Kubernetes. Raise them to upgrade."
  type        = object({ talos = string, kubernetes = string })
  default     = { talos = "v1.14.1", kubernetes = "v1.37.0" }
}

variable "control_planes" {
  description = "The control planes by name. Use an odd number. With a uuid, talosop refuses other hardware."
  type        = map(object({ address = string, uuid = optional(string), config_patches = optional(list(string)) }))

  validation {
    condition     = length(var.control_planes) % 2 == 1
    error_message = "Use an odd number of control planes, for the quorum of etcd."
  }
}

variable "workers" {
  description = "The workers by pool and name."
  type        = map(map(object({ address = string, uuid = optional(string), config_patches = optional(list(string)) })))
  default     = {}
}

variable "install" {
  description = "Disk for Talos. The installation wipes it. null for machines that boot from their disk, such as cloud VMs."
  type        = object({ disk = string })
  default     = { disk = "/dev/sda" }
}

variable "appear_within" {
  description = "How long machines may refuse connections before a create fails, such as 10m for VMs of the same apply. Default: 10s."
  type        = string
  default     = null
}

variable "platform" {
  description = "Platform of the Image Factory installer images, such as nocloud or aws. Default: metal."
  type        = string
  default     = null
}

variable "cni" {
  description = "Network plugin: null for Flannel, { name = \"none\" } for one that an addon installs."
  type        = object({ name = string })
  default     = null
}

variable "air_gapped" {
  description = "Whether the machines have no access to public networks."
  type        = bool
  default     = false
}

variable "registries" {
  description = "Registry mirrors and trusted CAs, as in the argument of talosop_cluster."
  type        = any
  default     = null
}

variable "config_patches" {
  description = "Patches for the configuration of all machines, as YAML."
  type        = list(string)
  default     = []
}

variable "restore_from" {
  description = "etcd snapshot to restore, in a file or a bucket."
  type = object({
    file   = optional(object({ path = string }))
    s3     = optional(object({ bucket = string, key = string, region = optional(string), endpoint = optional(string) }))
    sha256 = optional(string)
  })
  default = null
}

variable "restore_identities" {
  description = "age secret keys that decrypt the snapshot."
  type        = list(string)
  default     = null
  ephemeral   = true
}

variable "deletion_protection" {
  description = "Refuse to destroy the cluster and its secrets. Set it to false and apply before destroying."
  type        = bool
  default     = true
}
