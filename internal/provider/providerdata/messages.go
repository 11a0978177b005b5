package providerdata

import "github.com/talosop/terraform-provider-talosop/internal/finding"

// Messages are about the provider block, and about connections to clusters and to their host clusters.
var Messages = finding.NewCatalog("Provider block and connections")

// What the provider block has instead of the secrets of a cluster.
const (
	entryWithoutSecrets = "{{if .entry}}Its entry in `clusters` of the provider has no `secrets`.{{end}}"
	otherEntries        = "{{if .others}}`clusters` of the provider has {{.others}}.{{end}}"
	noEntries           = "{{if not (or .entry .others)}}The provider has no `clusters`.{{end}}"
)

var (
	secretsMissing = Messages.Error("secrets_missing",
		"No secrets of cluster {{.cluster}}",
		"Found no secrets for cluster {{quote .cluster}} here.", entryWithoutSecrets, otherEntries, noEntries,
		"Set `secrets` here, which stores them in state. To keep them out of state, set "+
			"`clusters = { {{quote .cluster}} = { secrets = … } }` in the provider block.")

	secretsNotInState = Messages.Error("secrets_not_in_state",
		"No secrets of cluster {{.cluster}} in state",
		"Found no secrets for cluster {{quote .cluster}} in state.", entryWithoutSecrets, otherEntries, noEntries,
		"A machine can only be removed with the secrets that it joined with.",
		"Set `clusters = { {{quote .cluster}} = { secrets = … } }` in the provider block. "+
			"If you moved the secrets to the resource, apply that first.")

	secretsOfAnotherCluster = Messages.Error("secrets_of_another_cluster",
		"Secrets of another cluster for {{.cluster}}",
		"The provider has secrets for cluster {{quote .cluster}} that differ from those of the last read of its machines.",
		"Machines accept only their own secrets.",
		"Give the provider the secrets of this cluster. Secrets with rotated keys list the old keys in `rotated`; keep "+
			"that list. If the cluster is gone, remove the resource from state with `terraform state rm`.")

	clusterNotRead = Messages.Warning("cluster_not_read",
		"Cluster {{.cluster}} was not read",
		"The secrets of cluster {{quote .cluster}} are neither in state nor in the provider block.",
		"State keeps the result of the last read.",
		"If you moved the secrets to the resource, this apply stores them, and the next refresh reads the cluster.")

	noHostConnection = Messages.Error("no_host_connection",
		"No connection to the host cluster of {{.cluster}}",
		"Neither the resource nor the provider sets a connection to the host cluster.",
		"Set one of `kubeconfig_path`, `kubeconfig` and `in_cluster` in `host` of the provider or of the resource.")

	writeOnlyHostConnection = Messages.Warning("write_only_host_connection",
		"Only a write-only kubeconfig connects to the host cluster of {{.cluster}}",
		"State does not contain this kubeconfig, and the provider block has none. "+
			"A refresh does not see the machines, and a destroy fails.",
		"Set the kubeconfig in `host` of the provider, or set `kubeconfig_path` or `in_cluster`.")

	hostNotRead = Messages.Warning("host_not_read",
		"Host cluster of {{.cluster}} was not read",
		"talosop has no connection to the host cluster: {{.cause}}.",
		"State keeps the result of the last read.",
		"Make sure that `host` of the resource or of the provider leads to the host cluster. "+
			"A destroy, and an apply that changes machines, need it.")

	hostNotChecked = Messages.Warning("host_not_checked",
		"Host cluster of {{.cluster}} was not checked",
		"The plan could not check whether the host cluster accepts the machines: {{.cause}}.",
		"The apply checks again before it creates anything.")

	hostUnsuitable = Messages.Error("host_unsuitable",
		"Host cluster of {{.cluster}} does not accept the machines",
		"{{.problem}}", "{{.solution}}", "Nothing was created.")

	hostProblem = Messages.Warning("host_problem",
		"Problem on the host cluster of {{.cluster}}",
		"{{.problem}}", "{{.solution}}")

	hostProblemPending = Messages.Warning("host_problem_pending",
		"Apply of cluster {{.cluster}} fails unless its host cluster changes",
		"{{.problem}}",
		"The apply fails before it creates anything if this is still the case.",
		"If another resource of this configuration solves it, name that resource in `depends_on`.",
		"Otherwise: {{.solution}}")

	wrongHostCluster = Messages.Error("wrong_host_cluster",
		"Unable to {{.verb}} machines of {{.cluster}}: wrong host cluster",
		"The kubeconfig does not lead to the host cluster of {{.machines}}.",
		"Recorded: {{.recorded}}.",
		"Found: {{.found}}.",
		"Nothing was sent to the host cluster or to a machine, and state is unchanged.",
		"Switch the context of the kubeconfig back, or set `host.context` of the resource or of the provider.",
		"A refresh and a destroy use the `host` in state. After you correct `host` of the resource, apply once with "+
			"`-refresh=false`.",
		"If the host cluster and its machines are gone for good, remove the resource from state: `terraform state rm`.")

	hostUnreachable = Messages.Error("host_unreachable",
		"Unable to reach the host cluster of {{.cluster}}",
		"talosop has no connection to the host cluster: {{.cause}}.",
		"Correct `host` of the cluster or of the provider.")

	exposureUnknown = Messages.Error("kubernetes_exposure_unknown",
		"Unable to find the Kubernetes API of {{.cluster}}",
		"The host cluster did not say how it exposes the Kubernetes API: {{.cause}}.",
		"Make sure that the host cluster answers, then apply again.")

	kubernetesNotExposed = Messages.Error("kubernetes_not_exposed",
		"Kubernetes API of {{.cluster}} is not exposed",
		"The cluster runs in containers, and only its host cluster reaches its Kubernetes API.",
		exposeKubernetes, useEphemeral)

	kubernetesNotExposedYet = Messages.Warning("kubernetes_not_exposed_yet",
		"Kubernetes API of {{.cluster}} is not exposed",
		"Only the host cluster reaches the Kubernetes API now. "+
			"If that does not change until the file is written, the apply fails.",
		exposeKubernetes, useEphemeral)

	tunnelFailed = Messages.Error("tunnel_failed",
		"Unable to reach {{.target}} through the host cluster",
		"talosop could not open a tunnel: {{.cause}}.",
		"Make sure that the host cluster and the control planes run, then try again.")

	tunnelStaysOpen = Messages.Warning("tunnel_stays_open",
		"Local port {{.address}} stays open",
		"talosop could not close the tunnel to the cluster: {{.cause}}.",
		"The port closes when the process of the provider ends.")

	upgradeChecksIncomplete = Messages.Warning("upgrade_checks_incomplete",
		"Kubernetes upgrade of {{.cluster}} is not fully checked",
		"The plan asks for seconds which APIs and features in use the upgrade removes. It got no answer from:"+
			"{{bullets .causes}}",
		"The apply continues in any case. Check these yourself first.")

	upgradeRemovesUsed = Messages.Warning("upgrade_removes_used",
		"Kubernetes upgrade of {{.cluster}} removes what is in use",
		"The upgrade from {{.from}} to {{.to}} removes these:{{bullets .removed}}",
		"The apply continues in any case. Before you apply, change them, or make sure that nothing needs them.")

	upgradeObstructed = Messages.Warning("upgrade_obstructed",
		"Objects of {{.cluster}} obstruct the Kubernetes upgrade",
		"The upgrade to {{.to}} may fail or lose data because of:{{bullets .problems}}",
		"The apply continues in any case. Correct these objects before you apply, or make sure that they do no harm. "+
			"The data source `talosop_upgrade_checks` also looks at pods, and into Secrets: at certificates and Helm charts.")

	kubeletsTooOld = Messages.Warning("kubelets_too_old",
		"Kubelets of other resources are too old for cluster {{.cluster}}",
		"kube-apiserver {{.version}} supports kubelets that are at most three minor versions older. "+
			"The upgrade waits for these nodes of other resources:{{bullets .nodes}}",
		"Upgrade their kubelets first. "+
			"If their resource waits for this one, upgrade this one to a version in between first.")
)

// What to do about a Kubernetes API that the host cluster does not expose.
const (
	exposeKubernetes = "Set `host.service.type` of the cluster to `NodePort` or `LoadBalancer`."
	useEphemeral     = "Or use the ephemeral resource talosop_kubeconfig, which opens a tunnel during a run."
)
