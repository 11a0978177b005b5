package hostcluster_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
)

// byHand is the client that changes objects in tests.
var byHand = metav1.PatchOptions{FieldManager: "kubectl-edit"}

func (s site) patchSet(t *testing.T, name, patch string) {
	t.Helper()

	_, err := s.cluster.API().AppsV1().StatefulSets(s.namespace).Patch(t.Context(), name, types.StrategicMergePatchType,
		[]byte(patch), byHand)
	check(t, err)
}

func (s site) patchService(t *testing.T, name, patch string) {
	t.Helper()

	_, err := s.cluster.API().CoreV1().Services(s.namespace).Patch(t.Context(), name, types.MergePatchType, []byte(patch),
		byHand)
	check(t, err)
}

func (s site) patchClaim(t *testing.T, name, patch string) {
	t.Helper()

	_, err := s.cluster.API().CoreV1().PersistentVolumeClaims(s.namespace).Patch(t.Context(), name, types.MergePatchType,
		[]byte(patch), byHand)
	check(t, err)
}

// saying reports whether one line has all the words.
func saying[T any](lines []T, words ...string) bool {
	for _, d := range lines {
		line := fmt.Sprint(d)
		has := true
		for _, word := range words {
			has = has && strings.Contains(line, word)
		}

		if has {
			return true
		}
	}

	return false
}

// A change by another client is observed, reported by object and field, and repaired without a new pod.
func TestDrift_isRepaired(t *testing.T) {
	t.Parallel()

	s := newSite(t)
	spec := s.spec("dev", 1, 0)
	spec.Machines[0].Pod.Annotations = map[string]string{"backup": "no"}
	check(t, s.Ensure(t.Context(), spec))
	before := s.observe(t, spec, quiet)

	orphan := metav1.DeletePropagationOrphan
	core, apps := s.cluster.API().CoreV1(), s.cluster.API().AppsV1()

	for _, c := range []struct {
		name   string
		tamper func(t *testing.T)
		seen   func(workload.Observation) bool
	}{
		{
			"selector of the endpoint", func(t *testing.T) { s.patchService(t, "dev", `{"spec":{"selector":{"app":"other"}}}`) },
			func(o workload.Observation) bool { return saying(o.Drift, "Service", "/dev:", "spec.selector") },
		},
		{
			"port of the endpoint", func(t *testing.T) {
				s.patchService(t, "dev", `{"spec":{"ports":[{"name":"talos-api","port":50001,"targetPort":"talos-api"}]}}`)
			},
			func(o workload.Observation) bool { return saying(o.Drift, "Service", "/dev") },
		},
		{
			"endpoint", func(t *testing.T) {
				check(t, core.Services(s.namespace).Delete(t.Context(), "dev", metav1.DeleteOptions{}))
			},
			func(o workload.Observation) bool { return saying(o.Missing, "Service", "/dev does not exist") },
		},
		{
			"budget", func(t *testing.T) {
				check(t, s.cluster.API().PolicyV1().PodDisruptionBudgets(s.namespace).Delete(t.Context(), "dev",
					metav1.DeleteOptions{}))
			},
			func(o workload.Observation) bool {
				return saying(o.Missing, "PodDisruptionBudget", "/dev does not exist")
			},
		},
		{
			"selector of the budget", func(t *testing.T) {
				s.patchBudget(t, "dev", `{"spec":{"selector":{"matchLabels":{"talosop.dev/role":"worker"}}}}`)
			},
			func(o workload.Observation) bool {
				return saying(o.Drift, "PodDisruptionBudget", "/dev:", "spec.selector")
			},
		},
		{
			"measure of the budget", func(t *testing.T) {
				s.patchBudget(t, "dev", `{"spec":{"maxUnavailable":null,"minAvailable":0}}`)
			},
			func(o workload.Observation) bool {
				return saying(o.Drift, "PodDisruptionBudget", "/dev", "minAvailable")
			},
		},
		{
			"label of a machine's Service", func(t *testing.T) {
				s.patchService(t, "dev-cp-0", `{"metadata":{"labels":{"talosop.dev/pool":null}}}`)
			},
			func(o workload.Observation) bool {
				return saying(o.Machines["cp-0"].Drift, "Service", "talosop.dev/pool")
			},
		},
		{
			"addresses of pods that are not ready", func(t *testing.T) {
				s.patchService(t, "dev-cp-0", `{"spec":{"publishNotReadyAddresses":false}}`)
			},
			func(o workload.Observation) bool {
				return saying(o.Machines["cp-0"].Drift, "publishNotReadyAddresses")
			},
		},
		{
			"update strategy", func(t *testing.T) {
				s.patchSet(t, "dev-cp-0", `{"spec":{"updateStrategy":{"type":"RollingUpdate"}}}`)
			},
			func(o workload.Observation) bool {
				return saying(o.Machines["cp-0"].Drift, "StatefulSet", "updateStrategy") && len(o.Machines["cp-0"].Outdated) == 0
			},
		},
		{
			"label of a claim", func(t *testing.T) {
				s.patchClaim(t, "var-dev-cp-0", `{"metadata":{"labels":{"talosop.dev/role":"x"}}}`)
			},
			func(o workload.Observation) bool {
				return saying(o.Machines["cp-0"].Drift, "PersistentVolumeClaim", "/var-dev-cp-0", "talosop.dev/role")
			},
		},
		{
			"StatefulSet without its pod", func(t *testing.T) {
				check(t, apps.StatefulSets(s.namespace).Delete(t.Context(), "dev-cp-0",
					metav1.DeleteOptions{PropagationPolicy: &orphan}))
			},
			func(o workload.Observation) bool {
				m := o.Machines["cp-0"]

				return m.Exists && !m.Complete && saying(m.Drift, "StatefulSet", "does not exist")
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.tamper(t)
			s.observe(t, spec, c.seen)
			check(t, s.Ensure(t.Context(), spec))

			after := s.observe(t, spec, quiet)
			if after.Machines["cp-0"].PodUID != before.Machines["cp-0"].PodUID {
				t.Error("the pod is another one")
			}
		})
	}
}

// The peer address of a control plane stays. talosop requests the address of a deleted Service again, and replaces
// a Service that another client made with another address. None of this is drift or changes the pod.
func TestDrift_peerAddressesStay(t *testing.T) {
	t.Parallel()

	s := newSite(t)
	spec := s.spec("dev", 1, 1)
	check(t, s.Ensure(t.Context(), spec))

	before := s.observe(t, spec, quiet).Machines["cp-0"]
	if !before.PeerAddress.IsValid() || s.observe(t, spec, quiet).Machines["batch/0"].PeerAddress.IsValid() {
		t.Fatalf("the control plane is at %s", before.PeerAddress)
	}

	spec.Machines[0].PeerAddress = before.PeerAddress
	services := s.cluster.API().CoreV1().Services(s.namespace)

	for _, again := range []func(){
		func() {},
		func() { // by a user with the labels of the old one
			made, err := services.Get(t.Context(), "dev-cp-0", metav1.GetOptions{})
			check(t, err)

			made.ObjectMeta = metav1.ObjectMeta{Name: "dev-cp-0-peer", Labels: made.Labels}
			made.Spec.ClusterIP, made.Spec.ClusterIPs = "", nil
			_, err = services.Create(t.Context(), made, metav1.CreateOptions{})
			check(t, err)
		},
	} {
		check(t, services.Delete(t.Context(), "dev-cp-0-peer", metav1.DeleteOptions{}))
		again()

		seen, err := s.Observe(t.Context(), spec)
		check(t, err)

		if m := seen.Machines["cp-0"]; m.PeerAddress == before.PeerAddress || !saying(m.Drift, "Service", "/dev-cp-0-peer") {
			t.Errorf("without its Service the machine is %+v", m)
		}

		check(t, s.Ensure(t.Context(), spec))

		if m := s.observe(t, spec, quiet).Machines["cp-0"]; m.PeerAddress != before.PeerAddress || m.PodUID != before.PodUID {
			t.Errorf("the machine was %+v and is %+v", before, m)
		}
	}

	// Whether it is known or not, an address is left as it is.
	spec.Machines[0].PeerAddress = netip.Addr{}
	check(t, s.Ensure(t.Context(), spec))

	if m := s.observe(t, spec, quiet).Machines["cp-0"]; m.PeerAddress != before.PeerAddress {
		t.Errorf("the address is %s, was %s", m.PeerAddress, before.PeerAddress)
	}
}

// What took the pod away is repaired, too, and the claims stay what they are.
func TestDrift_lostPodsComeBackWithTheirClaims(t *testing.T) {
	t.Parallel()

	s := newSite(t)
	spec := s.spec("dev", 0, 1)
	check(t, s.Ensure(t.Context(), spec))
	s.observe(t, spec, quiet)

	claims := s.objects(t, spec)

	s.patchSet(t, "dev-batch-0", `{"spec":{"replicas":0}}`)
	s.observe(t, spec, func(o workload.Observation) bool {
		m := o.Machines["batch/0"]

		return m.Exists && m.Pod == "" && m.Complete && saying(m.Drift, "spec.replicas is 0 instead of 1") &&
			strings.Contains(m.Diagnosis, "scaled to 0")
	})

	check(t, s.Ensure(t.Context(), spec))
	s.observe(t, spec, quiet)

	check(t, s.cluster.API().AppsV1().StatefulSets(s.namespace).Delete(t.Context(), "dev-batch-0", metav1.DeleteOptions{}))
	s.observe(t, spec, func(o workload.Observation) bool {
		return o.Machines["batch/0"].Pod == "" && o.Machines["batch/0"].Exists
	})

	check(t, s.Ensure(t.Context(), spec))
	s.observe(t, spec, quiet)

	for name, o := range s.objects(t, spec) {
		if strings.HasPrefix(name, "PersistentVolumeClaim") && uidOf(claims, name) != o.GetUID() {
			t.Errorf("%s is another one", name)
		}
	}
}

// A manual change of a template is reported and repaired, including fields added beside talosop's own. Ensure
// repairs it as long as the pod matches, and the pod stays.
func TestDrift_templateChangedByHand(t *testing.T) {
	t.Parallel()

	s := newSite(t)
	spec := s.spec("dev", 0, 1)
	check(t, s.Ensure(t.Context(), spec))
	before := s.observe(t, spec, quiet)

	for _, c := range []struct{ name, patch, word string }{
		{"image", `{"spec":{"template":{"spec":{"containers":[{"name":"talos","image":"evil.example/talos:v1"}]}}}}`,
			"image"},
		{"environment", `{"spec":{"template":{"spec":{"containers":[{"name":"talos","env":[{"name":"TALOSSKU","value":"x"}]}]}}}}`, "TALOSSKU"},
		{
			"port", `{"spec":{"template":{"spec":{"containers":[{"name":"talos","ports":[
				{"containerPort":50000,"protocol":"TCP","$patch":"delete"},{"containerPort":50001,"protocol":"TCP","name":"talos-api"}]}]}}}}`, "/dev-batch-0",
		},
		{"restart", `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"now"}}}}}`,
			"annotations"},
		{
			"volume", `{"spec":{"template":{"spec":{"volumes":[{"name":"opt","emptyDir":{}}],
				"containers":[{"name":"talos","volumeMounts":[{"name":"opt","mountPath":"/opt"}]}]}}}}`, "[opt]",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.patchSet(t, "dev-batch-0", c.patch)

			changed := func(o workload.Observation) bool { return len(o.Machines["batch/0"].Drift) > 0 }
			if m := s.observe(t, spec, changed).Machines["batch/0"]; !saying(m.Drift, "StatefulSet", c.word) ||
				len(m.Outdated) > 0 {
				t.Errorf("outdated: %q, drift: %q", m.Outdated, m.Drift)
			}

			check(t, s.Ensure(t.Context(), spec))
			s.observe(t, spec, quiet)
			check(t, s.Replace(t.Context(), spec, "batch/0"))

			// The pod is still the one that the wanted template made.
			if after := s.observe(t, spec, quiet); after.Machines["batch/0"].PodUID != before.Machines["batch/0"].PodUID {
				t.Error("the pod is another one")
			}
		})
	}

	// One that was made meanwhile is not.
	s.patchSet(t, "dev-batch-0", `{"spec":{"template":{"spec":{"nodeSelector":{"kubernetes.io/os":"linux"}}}}}`)
	s.observe(t, spec, func(o workload.Observation) bool { return len(o.Machines["batch/0"].Drift) > 0 })
	s.awaitController(t, "dev-batch-0")
	check(t, s.Restart(t.Context(), spec, "batch/0"))

	made := s.observe(t, spec, func(o workload.Observation) bool { return o.Machines["batch/0"].Ready })
	if m := made.Machines["batch/0"]; len(m.Outdated) != 1 || !saying(m.Outdated, "nodeSelector", "kubectl-edit") {
		t.Errorf("outdated: %q", m.Outdated)
	}

	check(t, s.Ensure(t.Context(), spec))
	s.observe(t, spec, func(o workload.Observation) bool { return len(o.Machines["batch/0"].Outdated) == 1 })
	check(t, s.Replace(t.Context(), spec, "batch/0"))

	if after := s.observe(t, spec, quiet); after.Machines["batch/0"].PodUID == made.Machines["batch/0"].PodUID {
		t.Error("the pod is the old one")
	}
}

// awaitController waits until the next pod of a StatefulSet is made from the template that it has.
func (s site) awaitController(t *testing.T, name string) {
	t.Helper()

	await(t, func(ctx context.Context) error {
		set, err := s.cluster.API().AppsV1().StatefulSets(s.namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil && set.Status.ObservedGeneration != set.Generation {
			err = errors.New("it is not so yet")
		}

		return err
	})
}

// Fields that another client set to their current values are no drift, and neither are foreign fields beside ours.
func TestDrift_sameValuesAreNone(t *testing.T) {
	t.Parallel()

	s := newSite(t)
	spec := s.spec("dev", 1, 0)
	check(t, s.Ensure(t.Context(), spec))
	s.observe(t, spec, quiet)

	s.patchSet(t, "dev-cp-0",
		`{"metadata":{"annotations":{"other":"x"}},"spec":{"template":{"spec":{"dnsPolicy":"ClusterFirst","restartPolicy":"Always"}}}}`)
	s.patchService(t, "dev", `{"metadata":{"annotations":{"other":"x"}},"spec":{"sessionAffinity":"None"}}`)

	// A client that applies an object unchanged owns all of it, defaults too.
	set, err := s.cluster.API().AppsV1().StatefulSets(s.namespace).Get(t.Context(), "dev-cp-0", metav1.GetOptions{})
	check(t, err)

	// Independent of its controller meanwhile.
	set.ManagedFields, set.ResourceVersion = nil, ""
	set.TypeMeta = metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "StatefulSet"}
	force := true
	_, err = s.cluster.API().AppsV1().StatefulSets(s.namespace).Patch(t.Context(), "dev-cp-0", types.ApplyPatchType,
		[]byte(encoded(t, set)),
		metav1.PatchOptions{FieldManager: "someone", Force: &force})
	check(t, err)

	if o := s.observe(t, spec, func(workload.Observation) bool { return true }); !quiet(o) {
		t.Errorf("there is drift: %+v", o)
	}

	check(t, s.Ensure(t.Context(), spec))

	if o := s.objects(t, spec)["StatefulSet dev-cp-0"]; o.GetAnnotations()["other"] != "x" {
		t.Error("an annotation of another client is gone")
	}

}
