package clusterhandle

import (
	"maps"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	provider "github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// The host cluster of machines in containers is described in four places. A resource that creates a cluster has all
// of it. Its handle has what others need to reach it, without secrets. Workers have their own settings, and the
// provider has the connection for all of them.

// The defaults.
const (
	DefaultHostDomain    = "cluster.local"
	DefaultHostImage     = "ghcr.io/siderolabs/talos"
	DefaultStorageState  = "1Gi"
	DefaultStorageVar    = "20Gi"
	DefaultStorageOther  = "100Mi"
	ServiceClusterIP     = "ClusterIP"
	serviceNodePort      = "NodePort"
	ServiceLoadBalancer  = "LoadBalancer"
	DefaultHostReachable = string(workload.PortForward)
)

const (
	kubeconfigPathText = "Path of a kubeconfig file of the host cluster, relative to the working directory of " +
		"Terraform, or beginning with `~/`. Not together with `kubeconfig` or `in_cluster`."
	kubeconfigContextText = "Name of the context of the kubeconfig that is used. Default: its `current-context`."
	inClusterText         = "Whether talosop runs in a pod of the host cluster, and uses the service account of that " +
		"pod (default `false`). Not together with a kubeconfig."
)

// HostAttribute is `host` of resources that create clusters.
func HostAttribute() schema.SingleNestedAttribute {
	attributes := reachAttributes()
	maps.Copy(attributes, dwellingAttributes())
	maps.Copy(attributes, map[string]schema.Attribute{
		"kubeconfig_wo": hostKubeconfig(),
		"namespace": schema.StringAttribute{
			Required:      true,
			PlanModifiers: []planmodifier.String{tf.ReplaceOnChange()},
			MarkdownDescription: "Namespace of the host cluster that the machines are in, a DNS label; clusters may " +
				"share one." + tf.ReplacesCluster,
		},
		"create_namespace": tf.OptionalBool("Whether talosop makes the namespace when it is missing, with leave for " +
			"privileged pods, and removes it with the cluster when nothing else is in it (default `false`)." + hostInPlace),
		"dns_domain": schema.StringAttribute{
			Optional:      true,
			PlanModifiers: []planmodifier.String{replaceOnOtherDomain(DefaultHostDomain)},
			MarkdownDescription: "DNS domain of the host cluster, which the names of the machines end in. Default: `" +
				DefaultHostDomain + "`." + tf.ReplacesCluster,
		},
		"service": hostServiceAttribute(),
		"pod": PodAttribute("The pods of all machines of the resource; values that a group sets in its own `pod` go before " +
			"these."),
	})

	return tf.OptionalObject(ContainersOnly+"The Kubernetes cluster whose pods the machines are, required with mode "+
		"`container`; how it is reached may be said in the `host` of the provider instead."+staysOnItsHost, attributes)
}

// WorkerHostAttribute is `host` of workers. What they leave out comes from the handle.
func WorkerHostAttribute() schema.SingleNestedAttribute {
	attributes := reachAttributes()
	maps.Copy(attributes, dwellingAttributes())
	attributes["kubeconfig_wo"] = hostKubeconfig()
	attributes["pod"] = PodAttribute("The pods of the machines of the resource, as `pod` beside `replicas`, which goes " +
		"before this one.")

	return tf.OptionalObject(ContainersOnly+"What these workers have of their own of the host cluster that `host` of "+
		"the handle describes; values that are not set are taken from there, and the connection also from the provider."+
		staysOnItsHost, attributes)
}

// HandleHost is `host` of the cluster handle. It contains no secret.
func HandleHost() schema.SingleNestedAttribute {
	attributes := hostPlace()
	maps.Copy(attributes, dwellingAttributes())

	return hostOfHandle(attributes)
}

func hostOfHandle(attributes map[string]schema.Attribute) schema.SingleNestedAttribute {
	return tf.OptionalObject("The Kubernetes cluster whose pods the machines are, with mode `container`. It holds no "+
		"credentials: where there is no `kubeconfig_path` and no `in_cluster`, those of the provider's `host` are used.",
		tf.Retold(attributes, handleText))
}

// handleText is a text of the host cluster in the handle: its meaning, and what a change does.
func handleText(description string) string {
	text, replaces := strings.CutSuffix(description, tf.ReplacesCluster)
	if text = tf.FirstSentence(text); replaces {
		return text + tf.ReplacesCluster
	}

	return text
}

// hostPlace describes where machines are in the host cluster of a handle, and how that is reached.
func hostPlace() map[string]schema.Attribute {
	attributes := reachAttributes()
	maps.Copy(attributes, map[string]schema.Attribute{
		"namespace": tf.RequiredString("Namespace of the host cluster that the machines are in." + tf.ReplacesCluster),
		"dns_domain": tf.OptionalString("DNS domain of the host cluster. Default: `" + DefaultHostDomain + "`." +
			tf.ReplacesCluster),
	})

	return attributes
}

// reachAttributes describe how the host cluster is reached.
func reachAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"kubeconfig_path": tf.OptionalString(kubeconfigPathText),
		"context":         tf.OptionalString(kubeconfigContextText),
		"in_cluster":      tf.OptionalBool(inClusterText),
		"access": tf.OptionalString("How talosop reaches the machines: `port-forward` (the default) through the API of the "+
			"host, `node-port` and `load-balancer` by a Service for each, `pod` by a route to the addresses of pods."+
			hostInPlace, stringvalidator.OneOf(
			string(workload.PortForward), string(workload.NodePort), string(workload.LoadBalancer), string(workload.Pod))),
	}
}

func hostKubeconfig() schema.StringAttribute {
	return schema.StringAttribute{
		Optional: true, Sensitive: true, WriteOnly: true,
		MarkdownDescription: "Content of a kubeconfig of the host cluster, in YAML or JSON; not together with " +
			"`kubeconfig_path` or `in_cluster`. Stored nowhere, it is missing when the resource is read or destroyed; " +
			"`kubeconfig` in the `host` of the provider is not.",
	}
}

// dwellingAttributes describe what the objects of machines have in common.
func dwellingAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"image": tf.OptionalString("Image of Talos for containers, without a tag: that is `talos_version`. Default: `" +
			DefaultHostImage + "`." + rollsPods),
		"image_pull_secrets": tf.OptionalStrings("Names of Secrets in the namespace, with credentials for the registry." +
			rollsPods),
		"labels": tf.OptionalStringMap("Labels of all objects of the machines on the host, pods included; `talosop.dev/` "+
			"and `app.kubernetes.io/` are those of talosop."+rollsPods, tf.MayBeBlank{}),
		"annotations": tf.OptionalStringMap("Annotations of all objects of the machines on the host, pods included."+
			rollsPods, tf.MayBeBlank{}),
	}
}

func hostServiceAttribute() schema.SingleNestedAttribute {
	return tf.OptionalObject("The Service of the Kubernetes API: inside that with the name of the cluster; another type "+
		"than `ClusterIP` makes a second one, `<name>-external`."+hostInPlace, map[string]schema.Attribute{
		"type": tf.OptionalString("`ClusterIP` (the default), `NodePort` or `LoadBalancer`.",
			stringvalidator.OneOf(ServiceClusterIP, serviceNodePort, ServiceLoadBalancer)),
		"talos_api":   tf.OptionalBool("Whether the second one leads to the Talos API and trustd, too (default `false`)."),
		"annotations": tf.OptionalStringMap("Annotations of it, such as those that load balancers read.", tf.MayBeBlank{}),
		"load_balancer_class": tf.OptionalString("Class of the load balancer, with type `LoadBalancer` only. Default: that " +
			"of the host."),
	})
}

// PodAttribute describes the settings of the pods of machines.
func PodAttribute(description string) schema.SingleNestedAttribute {
	return tf.OptionalObject(description+rollsPods, map[string]schema.Attribute{
		"resources": tf.OptionalObject("Resources of a machine and all that runs on it.", map[string]schema.Attribute{
			"requests": tf.OptionalStringMap("What is set aside on a node, such as `{ cpu = \"250m\", memory = \"1Gi\" }`. " +
				"Default: nothing."),
			"limits": tf.OptionalStringMap("What the machine never gets more of. Default: no limits."),
		}),
		"storage": storageAttribute(),
		"node_selector": tf.OptionalStringMap("Labels of the nodes of the host that the pods may run on. Default: any node.",
			tf.MayBeBlank{}),
		"tolerations":    tolerationsAttribute(),
		"priority_class": tf.OptionalString("Name of the PriorityClass of the pods. Default: that of the host."),
		"annotations":    tf.OptionalStringMap("Annotations of the pods alone, beside those of `host`.", tf.MayBeBlank{}),
	})
}

func tolerationsAttribute() schema.ListNestedAttribute {
	return tf.OptionalObjectList("Taints of nodes that the pods tolerate. Default: those that Kubernetes adds.",
		map[string]schema.Attribute{
			"key": tf.OptionalString("Key of the taint. Default: every key, with operator `Exists`."),
			"operator": tf.OptionalString("`Equal`, which compares `value`, or `Exists`. Default: `Equal`.",
				stringvalidator.OneOf("Equal", "Exists")),
			"value": tf.OptionalString("Value of the taint, with operator `Equal` only.", tf.MayBeBlank{}),
			"effect": tf.OptionalString("`NoSchedule`, `PreferNoSchedule` or `NoExecute`. Default: every effect.",
				stringvalidator.OneOf("NoSchedule", "PreferNoSchedule", "NoExecute")),
			"toleration_seconds": tf.OptionalNumber("Seconds that a pod stays on a node that gets the taint, with effect " +
				"`NoExecute` only. Default: for ever."),
		})
}

func storageAttribute() schema.SingleNestedAttribute {
	size := func(of, fallback string) schema.StringAttribute {
		return tf.OptionalString("Size of " + of + " (default `" + fallback + "`).")
	}

	return tf.OptionalObject("Where machines keep their data: in volumes of their own, which outlive their pods. A "+
		"larger size lets volumes grow where their class allows that; a smaller one is refused.", map[string]schema.Attribute{
		"class": tf.OptionalString("Storage class of the volumes. Default: that of the host." + keptByMachines),
		"ephemeral": tf.OptionalBool("Whether machines keep their data in their pods instead, and lose it with them, " +
			"etcd's included (default `false`)." + keptByMachines),
		"state": size("the volume of the machine's configuration (`/system/state`)", DefaultStorageState),
		"var":   size("the volume of etcd, images, pods and logs (`/var`)", DefaultStorageVar),
		"other": size("each of the volumes of `/etc/cni`, `/etc/kubernetes` and `/usr/libexec/kubernetes`",
			DefaultStorageOther),
	})
}

// ProviderHost describes how host clusters are reached, for all resources, data sources and ephemeral resources.
func ProviderHost() provider.SingleNestedAttribute {
	return provider.SingleNestedAttribute{
		Optional: true,
		MarkdownDescription: "How the host cluster of clusters in containers is reached, where resources and handles do " +
			"not say so themselves. Unlike the write-only `kubeconfig` of resources, it is also there when a resource is read " +
			"or destroyed. It is stored nowhere, and may come from ephemeral resources.",
		Attributes: map[string]provider.Attribute{
			"kubeconfig_path": provider.StringAttribute{Optional: true, MarkdownDescription: kubeconfigPathText},
			"kubeconfig": provider.StringAttribute{
				Optional: true, Sensitive: true,
				MarkdownDescription: "Content of a kubeconfig of the host cluster, in YAML or JSON. Not together with " +
					"`kubeconfig_path` or `in_cluster`.",
			},
			"context":    provider.StringAttribute{Optional: true, MarkdownDescription: kubeconfigContextText},
			"in_cluster": provider.BoolAttribute{Optional: true, MarkdownDescription: inClusterText},
		},
	}
}
