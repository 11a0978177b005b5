variable "cluster" {
  description = "The cluster handle: cluster of talosop_cluster or talosop_control_plane."
  type        = any
  sensitive   = true
}

variable "machines" {
  description = "Addresses of the workers by name."
  type        = map(string)
}

variable "alerts_url" {
  description = "URL of a webhook that mutes alerts (POST) and unmutes them (DELETE)."
  type        = string
  default     = "https://alerts.example.org/maintenance/prod"
}

variable "alerts_token" {
  description = "Token for that webhook."
  type        = string
  sensitive   = true
}

resource "talosop_worker" "storage" {
  cluster       = var.cluster
  talos_version = "v1.14.1"
  machines      = { for name, address in var.machines : name => { address = address } }
  install       = { disk = "/dev/sda" }

  hooks = {
    # Ceph does not move data off OSDs that are down during the rollout. The Job is the toolbox job of Rook.
    ceph_noout = {
      scope  = "rollout"
      before = { job = yamlencode(merge(local.ceph, { spec = local.ceph_jobs["set"] })) }
      after  = { job = yamlencode(merge(local.ceph, { spec = local.ceph_jobs["unset"] })) }
    }

    # Longhorn waits an hour, and not 10 minutes, before it replaces the replicas of a node that is away.
    longhorn_replicas = {
      scope  = "rollout"
      before = { patch = merge(local.longhorn_setting, { patch = yamlencode({ value = "3600" }) }) }
      after  = { patch = merge(local.longhorn_setting, { patch = yamlencode({ value = "600" }) }) }
    }

    # CloudNativePG moves the primary of a database off a node before the node is drained.
    postgres_switchover = {
      timeout = "10m"
      before  = { job = yamlencode(local.switchover) }
    }

    # A failed call mutes no alerts, and does not stop the rollout.
    alerts = {
      scope      = "rollout"
      timeout    = "1m"
      on_failure = "continue"
      before     = { http = merge(local.alerts, { method = "POST", body = jsonencode({ reason = "rollout" }) }) }
      after      = { http = merge(local.alerts, { method = "DELETE" }) }
    }
  }
}

locals {
  ceph = {
    apiVersion = "batch/v1"
    kind       = "Job"
    metadata   = { name = "noout", namespace = "rook-ceph" }
  }

  ceph_jobs = { for verb in ["set", "unset"] : verb => { template = { spec = {
    restartPolicy = "OnFailure"
    initContainers = [{
      name = "config", image = "rook/ceph:v1.18.4", command = ["/usr/local/bin/toolbox.sh"], args = ["--skip-watch"]
      env  = [{ name = "ROOK_CEPH_USERNAME", valueFrom = { secretKeyRef = { name = "rook-ceph-mon", key = "ceph-username" } } }]
      volumeMounts = [
        { mountPath = "/etc/ceph", name = "config" },
        { mountPath = "/etc/rook", name = "endpoints" },
        { mountPath = "/var/lib/rook-ceph-mon", name = "secret" },
      ]
    }]
    containers = [{
      name         = "ceph", image = "rook/ceph:v1.18.4", command = ["ceph", "osd", verb, "noout"]
      volumeMounts = [{ mountPath = "/etc/ceph", name = "config", readOnly = true }]
    }]
    volumes = [
      { name = "config", emptyDir = {} },
      { name = "secret", secret = { secretName = "rook-ceph-mon", items = [{ key = "ceph-secret", path = "secret.keyring" }] } },
      { name = "endpoints", configMap = { name = "rook-ceph-mon-endpoints", items = [{ key = "data", path = "mon-endpoints" }] } },
    ]
  } } } }

  longhorn_setting = {
    api_version = "longhorn.io/v1beta2"
    kind        = "Setting"
    namespace   = "longhorn-system"
    name        = "replica-replenishment-wait-interval"
  }

  # The service account may list pods, and patch the status of the cluster.
  switchover = {
    apiVersion = "batch/v1"
    kind       = "Job"
    metadata   = { name = "switchover", namespace = "database" }
    spec = { template = { spec = {
      restartPolicy      = "OnFailure"
      serviceAccountName = "switchover"
      containers = [{
        name    = "switchover", image = "alpine/k8s:1.34.1"
        command = ["sh", "-ec", file("${path.module}/switchover.sh")]
        env     = [{ name = "NODE", value = "{{node}}" }, { name = "CLUSTER", value = "orders" }]
      }]
    } } }
  }

  alerts = {
    url     = var.alerts_url
    headers = { Authorization = "Bearer ${var.alerts_token}", Content-Type = "application/json" }
  }
}
