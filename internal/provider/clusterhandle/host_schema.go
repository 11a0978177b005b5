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
	kubeconfigContextText = "Name of the kubeconfig context to use. Default: its `current-context`."
	inClusterText         = "Whether talosop runs in a pod of the host cluster and uses the service account of that " +
		"pod (default `false`). Not together with a kubeconfig."
)

// HostAttribute is `host` of resources that create clusters.
func HostAttribute() schema.SingleNestedAttribute {
	attributes := reachAttributes()
	maps.Copy(attributes, sharedAttributes())
	maps.Copy(attributes, map[string]schema.Attribute{
		"kubeconfig_wo": hostKubeconfig(),
		"namespace": schema.StringAttribute{
			Required:      true,
			PlanModifiers: []planmodifier.String{tf.ReplaceOnChange()},
			MarkdownDescription: "Namespace of the machines in the host cluster, a DNS label. Several clusters may share " +
				"one." + tf.ReplacesCluster,
		},
		"create_namespace": tf.OptionalBool("Whether talosop creates a missing namespace, which allows privileged pods, " +
			"and deletes it with the cluster if it is otherwise empty (default `false`)." + hostInPlace),
		"dns_domain": schema.StringAttribute{
			Optional:      true,
			PlanModifiers: []planmodifier.String{replaceOnOtherDomain(DefaultHostDomain)},
			MarkdownDescription: "DNS domain of the host cluster, the suffix of the machine names. Default: `" +
				DefaultHostDomain + "`." + tf.ReplacesCluster,
		},
		"service": hostServiceAttribute(),
		"pod":     PodAttribute("The pods of all machines of the resource. Values in the `pod` of a group take precedence."),
	})

	return tf.OptionalObject(ContainersOnly+"The Kubernetes cluster that runs the machines as pods, required with "+
		"mode `container`; `host` of the provider can set the connection."+staysOnItsHost, attributes)
}

// WorkerHostAttribute is `host` of workers. What they leave out comes from the handle.
func WorkerHostAttribute() schema.SingleNestedAttribute {
	attributes := reachAttributes()
	maps.Copy(attributes, sharedAttributes())
	attributes["kubeconfig_wo"] = hostKubeconfig()
	attributes["pod"] = PodAttribute("The pods of the machines of the resource. The `pod` beside `replicas` takes " +
		"precedence.")

	return tf.OptionalObject(ContainersOnly+"Settings of these workers that differ from `host` of the handle, which "+
		"provides the others; the provider can also set the connection."+staysOnItsHost, attributes)
}

// HandleHost is `host` of the cluster handle. It contains no secret.
func HandleHost() schema.SingleNestedAttribute {
	attributes := hostPlace()
	maps.Copy(attributes, sharedAttributes())

	return hostOfHandle(attributes)
}

func hostOfHandle(attributes map[string]schema.Attribute) schema.SingleNestedAttribute {
	return tf.OptionalObject("The Kubernetes cluster that runs the machines as pods, with mode `container`. It holds "+
		"no credentials. Without `kubeconfig_path` and `in_cluster`, the provider uses those of its own `host`.",
		tf.WithDescriptions(attributes, handleText))
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
		"namespace": tf.RequiredString("Namespace of the machines in the host cluster." + tf.ReplacesCluster),
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
		"access": tf.OptionalString("How talosop reaches the machines: `port-forward` (the default) through the host "+
			"API, `node-port` or `load-balancer` by one Service each, `pod` by routes to pod addresses."+
			hostInPlace, stringvalidator.OneOf(
			string(workload.PortForward), string(workload.NodePort), string(workload.LoadBalancer), string(workload.Pod))),
	}
}

func hostKubeconfig() schema.StringAttribute {
	return schema.StringAttribute{
		Optional: true, Sensitive: true, WriteOnly: true,
		MarkdownDescription: "Content of a kubeconfig of the host cluster, in YAML or JSON. Not together with " +
			"`kubeconfig_path` or `in_cluster`. It is not stored, so a read or destroy needs `kubeconfig` in `host` of the " +
			"provider.",
	}
}

// sharedAttributes describe what the objects of machines have in common.
func sharedAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"image": tf.OptionalString("Container image of Talos, without a tag: `talos_version` is the tag. Default: `" +
			DefaultHostImage + "`." + rollsPods),
		"image_pull_secrets": tf.OptionalStrings("Names of Secrets in the namespace, with credentials for the registry." +
			rollsPods),
		"labels": tf.OptionalStringMap("Labels of all objects of the machines on the host, pods included. talosop "+
			"reserves `talosop.dev/` and `app.kubernetes.io/`."+rollsPods, tf.MayBeBlank{}),
		"annotations": tf.OptionalStringMap("Annotations of all objects of the machines on the host, pods included."+
			rollsPods, tf.MayBeBlank{}),
	}
}

func hostServiceAttribute() schema.SingleNestedAttribute {
	return tf.OptionalObject("The Service of the Kubernetes API inside the host cluster, with the name of the "+
		"cluster. A type other than `ClusterIP` creates a second one, `<name>-external`."+
		hostInPlace, map[string]schema.Attribute{
		"type": tf.OptionalString("`ClusterIP` (the default), `NodePort` or `LoadBalancer`.",
			stringvalidator.OneOf(ServiceClusterIP, serviceNodePort, ServiceLoadBalancer)),
		"talos_api": tf.OptionalBool("Whether the second Service also exposes the Talos API and trustd (default " +
			"`false`)."),
		"annotations": tf.OptionalStringMap("Annotations of the second Service, for example for load "+
			"balancers.", tf.MayBeBlank{}),
		"load_balancer_class": tf.OptionalString("Class of the load balancer, with type `LoadBalancer` only. Default: " +
			"the class of the host."),
	})
}

// PodAttribute describes the settings of the pods of machines.
func PodAttribute(description string) schema.SingleNestedAttribute {
	return tf.OptionalObject(description+rollsPods, map[string]schema.Attribute{
		"resources": tf.OptionalObject("Resources of a machine and of all containers in it.", map[string]schema.Attribute{
			"requests": tf.OptionalStringMap("Resources that a node reserves, such as `{ cpu = \"250m\", memory = \"1Gi\" " +
				"}`. Default: none."),
			"limits": tf.OptionalStringMap("Upper limits of the machine. Default: no limits."),
		}),
		"storage": storageAttribute(),
		"node_selector": tf.OptionalStringMap("Labels that select the nodes of the host for the pods. Default: any node.",
			tf.MayBeBlank{}),
		"tolerations": tolerationsAttribute(),
		"priority_class": tf.OptionalString("Name of the PriorityClass of the pods. Default: the default class of the " +
			"host."),
		"annotations": tf.OptionalStringMap("Annotations of the pods only, in addition to those of "+
			"`host`.", tf.MayBeBlank{}),
	})
}

func tolerationsAttribute() schema.ListNestedAttribute {
	return tf.OptionalObjectList("Node taints that the pods tolerate. Default: the tolerations that Kubernetes adds.",
		map[string]schema.Attribute{
			"key": tf.OptionalString("Key of the taint. Default: every key, with operator `Exists`."),
			"operator": tf.OptionalString("`Equal`, which compares `value`, or `Exists`. Default: `Equal`.",
				stringvalidator.OneOf("Equal", "Exists")),
			"value": tf.OptionalString("Value of the taint, with operator `Equal` only.", tf.MayBeBlank{}),
			"effect": tf.OptionalString("`NoSchedule`, `PreferNoSchedule` or `NoExecute`. Default: every effect.",
				stringvalidator.OneOf("NoSchedule", "PreferNoSchedule", "NoExecute")),
			"toleration_seconds": tf.OptionalNumber("Seconds that a pod stays on a node that gets the taint, with effect " +
				"`NoExecute` only. Default: forever."),
		})
}

func storageAttribute() schema.SingleNestedAttribute {
	size := func(of, fallback string) schema.StringAttribute {
		return tf.OptionalString("Size of " + of + " (default `" + fallback + "`).")
	}

	return tf.OptionalObject("Where machines keep their data: in separate volumes, which outlive their pods. Volumes "+
		"grow if you raise a size and their class allows it. The apply refuses a smaller "+
		"size.", map[string]schema.Attribute{
		"class": tf.OptionalString("Storage class of the volumes. Default: the default class of the host." +
			keptByMachines),
		"ephemeral": tf.OptionalBool("Whether machines keep their data in their pods, and lose it with them, etcd " +
			"included (default `false`)." + keptByMachines),
		"state": size("the volume of the machine configuration (`/system/state`)", DefaultStorageState),
		"var":   size("the volume of etcd, images, pods and logs (`/var`)", DefaultStorageVar),
		"other": size("each volume of `/etc/cni`, `/etc/kubernetes` and `/usr/libexec/kubernetes`",
			DefaultStorageOther),
	})
}

// ProviderHost describes how host clusters are reached, for all resources, data sources and ephemeral resources.
func ProviderHost() provider.SingleNestedAttribute {
	return provider.SingleNestedAttribute{
		Optional: true,
		MarkdownDescription: "How the provider reaches the host cluster of clusters in containers, unless a resource or " +
			"handle sets it. Unlike the write-only `kubeconfig` of resources, it is available to reads and destroys. It is " +
			"not stored, and may come from ephemeral resources.",
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
