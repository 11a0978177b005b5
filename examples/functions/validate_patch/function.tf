variable "config_patches" {
  description = "Patches of the machine configuration."
  type        = list(string)
  default     = []

  validation {
    # An invalid patch fails here, with the reason.
    condition     = alltrue([for patch in var.config_patches : provider::talosop::validate_patch(patch, "v1.14.1")])
    error_message = "Each element must be a patch of the machine configuration."
  }
}
