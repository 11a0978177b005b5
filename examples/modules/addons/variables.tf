variable "clusters" {
  description = "Labels of the clusters by name; variables for the templates of values; values (YAML) by addon, which win over the template."
  type = map(object({
    labels    = optional(map(string), {})
    variables = optional(map(string), {})
    values    = optional(map(string), {})
  }))
}

# Apart from the clusters, because keys of for_each cannot come from sensitive values.
variable "handles" {
  description = "Handles of the clusters by name. They contain the secrets of the clusters."
  type        = map(any)
  sensitive   = true
}

variable "addons" {
  description = "Charts by addon, with the selector of their clusters (all by default), whether to adopt existing releases, and a template of their values (YAML) with cluster, labels and variables."
  type = map(object({
    chart      = string
    repository = optional(string)
    version    = optional(string)
    namespace  = optional(string)
    release    = optional(string)
    values     = optional(string)
    adopt      = optional(bool)
    selector = optional(object({
      match_labels = optional(map(string), {})
      match_expressions = optional(list(object({
        key      = string
        operator = string
        values   = optional(list(string), [])
      })), [])
    }), {})
  }))

  validation {
    condition = alltrue(flatten([
      for a in values(var.addons) : [
        for e in a.selector.match_expressions :
        contains(["In", "NotIn", "Exists", "DoesNotExist"], e.operator) && contains(["In", "NotIn"], e.operator) == (length(e.values) > 0)
      ]
    ]))
    error_message = "Use the operators In and NotIn with values, and Exists and DoesNotExist without."
  }
}
