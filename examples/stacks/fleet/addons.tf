locals {
  addons = {
    # Every cluster.
    metrics-server = {
      chart      = "metrics-server"
      repository = "https://kubernetes-sigs.github.io/metrics-server"
      version    = "3.13.0"
      namespace  = "kube-system"
      values     = file("${path.module}/values/metrics-server.yaml")
    }

    # Clusters in production.
    ingress-nginx = {
      chart      = "ingress-nginx"
      repository = "https://kubernetes.github.io/ingress-nginx"
      version    = "4.13.3"
      namespace  = "ingress-nginx"
      values     = file("${path.module}/values/ingress-nginx.yaml")
      selector   = { match_labels = { tier = "prod" } }
    }

    # Clusters in these regions, except for tests.
    cert-manager = {
      chart      = "cert-manager"
      repository = "oci://quay.io/jetstack/charts"
      version    = "v1.19.1"
      namespace  = "cert-manager"
      values     = "crds: { enabled: true }"
      selector = {
        match_expressions = [
          { key = "region", operator = "In", values = ["eu", "us"] },
          { key = "tier", operator = "NotIn", values = ["test"] },
        ]
      }
    }
  }
}
