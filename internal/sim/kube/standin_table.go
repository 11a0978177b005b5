package kube

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/talosop/terraform-provider-talosop/internal/sim/objects"
)

const nodeRolePrefix = "node-role.kubernetes.io/"

// table is the response format that kubectl requests for printing. Nodes have the columns of a kube-apiserver,
// everything else name and age.
func table(k objects.Kind, items []*unstructured.Unstructured, version string) metav1.Table {
	t := metav1.Table{
		TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "Table"},
		ListMeta: metav1.ListMeta{ResourceVersion: version},
		ColumnDefinitions: []metav1.TableColumnDefinition{
			{Name: "Name", Type: "string", Format: "name"},
		},
	}

	if k.Resource == "nodes" {
		t.ColumnDefinitions = append(t.ColumnDefinitions,
			metav1.TableColumnDefinition{Name: "Status", Type: "string"},
			metav1.TableColumnDefinition{Name: "Roles", Type: "string"},
			metav1.TableColumnDefinition{Name: "Age", Type: "string"},
			metav1.TableColumnDefinition{Name: "Version", Type: "string"},
			metav1.TableColumnDefinition{Name: "Internal-IP", Type: "string", Priority: 1},
			metav1.TableColumnDefinition{Name: "OS-Image", Type: "string", Priority: 1},
		)
	} else {
		t.ColumnDefinitions = append(t.ColumnDefinitions, metav1.TableColumnDefinition{Name: "Age", Type: "string"})
	}

	for _, item := range items {
		age := duration.HumanDuration(time.Since(item.GetCreationTimestamp().Time))
		cells := []any{item.GetName(), age}

		if k.Resource == "nodes" {
			cells = nodeCells(item, age)
		}

		t.Rows = append(t.Rows, metav1.TableRow{
			Cells: cells, Object: runtime.RawExtension{Object: partial(item)},
		})
	}

	return t
}

func partial(item *unstructured.Unstructured) *metav1.PartialObjectMetadata {
	out := meta.AsPartialObjectMetadata(item)
	out.TypeMeta = metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}

	return out
}

func nodeCells(item *unstructured.Unstructured, age string) []any {
	node := &corev1.Node{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, node); err != nil {
		return []any{item.GetName(), "Unknown", "<none>", age, "", "", ""}
	}

	state := "NotReady"
	if slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	}) {
		state = "Ready"
	}

	if node.Spec.Unschedulable {
		state += ",SchedulingDisabled"
	}

	var roles []string

	for label := range node.Labels {
		if role, ok := strings.CutPrefix(label, nodeRolePrefix); ok {
			roles = append(roles, role)
		}
	}

	slices.Sort(roles)

	if len(roles) == 0 {
		roles = []string{"<none>"}
	}

	address := ""

	for _, a := range node.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			address = a.Address
		}
	}

	return []any{
		node.Name, state, strings.Join(roles, ","), age, node.Status.NodeInfo.KubeletVersion, address,
		node.Status.NodeInfo.OSImage,
	}
}
