# With the kubeconfig of KUBECONFIG or ~/.kube/config.
terraform import talosop_addon.metrics_server kube-system/metrics-server
# Where the chart comes from is in no record of Helm. An id that says it gives an empty plan.
terraform import talosop_addon.metrics_server \
  '{"kubeconfig": {"path": "kubeconfig"}, "namespace": "kube-system", "name": "metrics-server",
    "repository": "https://kubernetes-sigs.github.io/metrics-server", "chart": "metrics-server", "version": "3.13.0"}'
# A registry without TLS, or one with a certificate of a private authority, is reached as "registry" says.
terraform import talosop_addon.metrics_server \
  '{"kubeconfig": {"path": "kubeconfig"}, "namespace": "kube-system", "name": "metrics-server",
    "chart": "oci://registry.example.org/charts/metrics-server", "version": "3.13.0", "registry": {"plain_http": true}}'
