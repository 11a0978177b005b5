package workload

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A volume that is called lost is wiped with its machine. It must be certain: only that a node does not exist is, and
// not that there is none now in the volume's zone, which scales, nor that the host has no nodes at all.
func TestVolumes_areLostOnlyWithTheirNode(t *testing.T) {
	t.Parallel()

	node := func(name, hostname string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name,
			Labels: map[string]string{corev1.LabelHostname: hostname}}}
	}
	in := func(key string, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
	}
	labeled := func(r ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: r}
	}
	named := func(name string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{in(metav1.ObjectNameField, name)}}
	}
	unknown := in(corev1.LabelHostname, "h3")
	unknown.Operator = "Like"
	not := corev1.NodeSelectorRequirement{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpNotIn,
		Values: []string{"h3"}}
	zone, others := in("topology.ebs.csi.aws.com/zone", "eu-1a"), []*corev1.Node{node("n1", "h1"), node("n2", "h2")}

	for name, c := range map[string]struct {
		terms []corev1.NodeSelectorTerm
		nodes []*corev1.Node
		lost  bool
	}{
		"its host is gone": {[]corev1.NodeSelectorTerm{labeled(in(corev1.LabelHostname, "h3"))}, others,
			true},
		"its host is there": {[]corev1.NodeSelectorTerm{labeled(in(corev1.LabelHostname, "h2"))}, others,
			false},
		"its host has lost its label": {[]corev1.NodeSelectorTerm{labeled(in(corev1.LabelHostname, "n2"))}, others,
			false},
		"its node is gone":  {[]corev1.NodeSelectorTerm{named("n3")}, others, true},
		"its node is there": {[]corev1.NodeSelectorTerm{named("n1")}, others, false},
		"its host in its zone is gone": {[]corev1.NodeSelectorTerm{labeled(zone, in(corev1.LabelHostname, "h3"))},
			others, true},
		"its host is in another zone now": {[]corev1.NodeSelectorTerm{labeled(zone, in(corev1.LabelHostname, "h1"))},
			others, false},
		"its zone has no node": {[]corev1.NodeSelectorTerm{labeled(zone)}, others, false},
		"a label of the storage is gone": {[]corev1.NodeSelectorTerm{labeled(in("topology.topolvm.io/node", "n3"))},
			others, false},
		"a host that it is not on":    {[]corev1.NodeSelectorTerm{labeled(not)}, others, false},
		"an operator of another time": {[]corev1.NodeSelectorTerm{labeled(unknown)}, others, false},
		"an empty term":               {[]corev1.NodeSelectorTerm{{}}, others, false},
		"one of several hosts": {[]corev1.NodeSelectorTerm{labeled(in(corev1.LabelHostname, "h3", "h4"))},
			others, false},
		"its host is gone, or a zone": {
			[]corev1.NodeSelectorTerm{labeled(in(corev1.LabelHostname, "h3")), labeled(zone)}, others, false},
		"both its hosts are gone": {
			[]corev1.NodeSelectorTerm{labeled(in(corev1.LabelHostname, "h3")), named("n4")}, others, true},
		"the host cluster has no nodes": {[]corev1.NodeSelectorTerm{labeled(in(corev1.LabelHostname, "h3"))}, nil,
			false},
		"a volume for which nothing is said": {nil, others, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s, m := Spec{Cluster: "dev", Namespace: "host"}, Machine{Pool: "cp"}
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: s.claimName(m, varPath)}}
			claim.Spec.VolumeName, claim.Status.Phase = "pv", corev1.ClaimBound
			volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}}
			volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: c.terms}}

			nodes := map[string]*corev1.Node{}
			for _, n := range c.nodes {
				nodes[n.Name] = n
			}

			about := &surroundings{
				nodes: func() (map[string]*corev1.Node, error) { return nodes, nil },
				volumes: func() (map[string]*corev1.PersistentVolume, error) {
					return map[string]*corev1.PersistentVolume{"pv": volume}, nil
				},
			}

			lines, err := about.lost(s, m, &Inventory{Claims: map[string]*corev1.PersistentVolumeClaim{claim.Name: claim}})
			if err != nil || len(lines) > 0 != c.lost {
				t.Errorf("lost is %t by %q, %v", len(lines) > 0, lines, err)
			}
		})
	}
}
