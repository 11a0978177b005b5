package hostcluster

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"
)

// checkPlaces says which machines to be made no node takes as nodes are now. It is a warning: nodes may come when pods wait for them.
func (c *checking) checkPlaces(ctx context.Context) error {
	missing := c.missing()
	if len(missing) == 0 {
		return nil
	}

	nodes, err := c.host.client().CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if c.unseenIf(err, "nodes") {
		return nil
	}

	if err != nil {
		return fmt.Errorf("list the nodes: %w", err)
	}

	said := map[string]bool{}

	for _, m := range missing {
		f, found := placeless(m, nodes.Items)
		if shape := c.shape(m); found && !said[shape] {
			said[shape] = true

			c.add(f)
		}
	}

	return nil
}

// placeless says why no node takes a machine, as far as that can be told from one node and one machine.
func placeless(m Machine, nodes []corev1.Node) (f Finding, found bool) {
	selected := slices.DeleteFunc(slices.Clone(nodes), func(n corev1.Node) bool {
		return !labels.SelectorFromSet(m.Pod.NodeSelector).Matches(labels.Set(n.Labels))
	})
	if len(selected) == 0 && len(m.Pod.NodeSelector) > 0 {
		return Finding{
			Warning: true, Attribute: attributeNodeSelector,
			Found: fmt.Sprintf("None of the %d nodes has the labels %s that machine %s wants.", len(nodes), labels.Set(m.Pod.NodeSelector), m.Name),
			Help:  "Its pod waits until there is one.",
		}, true
	}

	open := slices.DeleteFunc(slices.Clone(selected), func(n corev1.Node) bool { return !isNodeReady(&n) || n.Spec.Unschedulable || !tolerated(m, &n) })
	if len(open) == 0 {
		return Finding{
			Warning: true, Attribute: attributePod,
			Found: fmt.Sprintf("Of the %d nodes that machine %s may run on, none is ready and without taints that it does not tolerate.", len(selected), m.Name),
			Help:  "Its pod waits until there is one; see pod.tolerations.",
		}, true
	}

	wants := requestsOf(m.Pod.Resources)

	for _, name := range slices.Sorted(maps.Keys(wants)) {
		want := wants[name]
		largest := slices.MaxFunc(open, func(a, b corev1.Node) int {
			return cmp.Compare(a.Status.Allocatable.Name(name, "").AsApproximateFloat64(), b.Status.Allocatable.Name(name, "").AsApproximateFloat64())
		}).Status.Allocatable[name]

		// A kubelet that has just begun has not said yet what it has.
		if len(open[0].Status.Allocatable) > 0 && largest.Cmp(want) < 0 {
			return Finding{
				Warning: true, Attribute: attributeResources,
				Found: fmt.Sprintf("Machine %s wants %s of %s, and no node that it may run on has more than %s.", m.Name, want.String(), name, largest.String()),
				Help:  "Its pod waits until there is one.",
			}, true
		}
	}

	return Finding{}, false
}

// tolerated says whether a machine's pod puts up with all taints of a node that keep pods away.
func tolerated(m Machine, node *corev1.Node) bool {
	return !slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
		return taint.Effect != corev1.TaintEffectPreferNoSchedule && !slices.ContainsFunc(m.Pod.Tolerations, func(t corev1.Toleration) bool {
			return t.ToleratesTaint(klog.Background(), &taint, false)
		})
	})
}
