resource "talosop_secrets" "prod" {}

# Warn a year before a CA of the cluster expires.
check "authorities" {
  assert {
    condition     = alltrue([for a in values(talosop_secrets.prod.authorities) : timecmp(a.not_after, timeadd(plantimestamp(), "8760h")) > 0])
    error_message = "A certificate authority of the cluster expires within a year."
  }
}
