package sim_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/images"
)

// The images of components, without their tags.
const (
	apiServerImage = "registry.k8s.io/kube-apiserver"
	managerImage   = "registry.k8s.io/kube-controller-manager"
	schedulerImage = "registry.k8s.io/kube-scheduler"
	proxyImage     = "registry.k8s.io/kube-proxy"
	kubeletImage   = "ghcr.io/siderolabs/kubelet"
)

// setImage gives a machine another tag of an image, as an upgrade of Kubernetes does.
func (c *testCluster) setImage(m *sim.Machine, image, tag string) {
	c.t.Helper()
	c.rewrite(m, regexp.QuoteMeta(image)+`:\S+`, image+":"+tag)
}

// rewrite changes a text of the configuration of a machine.
func (c *testCluster) rewrite(m *sim.Machine, pattern, text string) {
	c.t.Helper()

	data := regexp.MustCompile(pattern).ReplaceAllString(string(m.Config()), text)

	_, err := c.secure(m).ApplyConfiguration(c.t.Context(), &machine.ApplyConfigurationRequest{
		Data: []byte(data), Mode: machine.ApplyConfigurationRequest_NO_REBOOT,
	})
	check(c.t, err)
}

// stamps are Talos's annotations about the configuration of a static pod.
func stamps(annotations map[string]string) string {
	return fmt.Sprintf("%s/%s/%s", annotations[constants.AnnotationStaticPodConfigVersion],
		annotations[constants.AnnotationStaticPodConfigFileVersion], annotations[constants.AnnotationStaticPodSecretsVersion])
}

// served is the stamp of a static pod as machined serves it.
func (c *testCluster) served(m *sim.Machine, id string) string {
	c.t.Helper()

	pod, err := safe.StateGetByID[*k8s.StaticPod](c.t.Context(), c.secure(m).COSI, id)
	check(c.t, err)

	meta, ok := pod.TypedSpec().Pod["metadata"].(map[string]any)
	if !ok {
		c.t.Fatalf("static pod %s has no metadata", id)
	}

	annotations := map[string]string{}

	for name, value := range meta["annotations"].(map[string]any) {
		annotations[name] = fmt.Sprint(value)
	}

	return stamps(annotations)
}

// mirror is the mirror pod of a component on a machine.
func mirror(ctx context.Context, kube kubernetes.Interface, m *sim.Machine, id string) (*corev1.Pod, error) {
	return kube.CoreV1().Pods("kube-system").Get(ctx, id+"-"+m.Hostname(), metav1.GetOptions{})
}

// settled waits until the mirror pod of a component is the one that machined serves, with
// an image, and Ready.
func (c *testCluster) settled(kube kubernetes.Interface, m *sim.Machine, id, image string) {
	c.t.Helper()

	eventually(c.t, id+" with "+image, func(ctx context.Context) error {
		pod, err := mirror(ctx, kube, m, id)
		if err != nil {
			return err
		}

		switch want := c.served(m, id); {
		case stamps(pod.Annotations) != want:
			return fmt.Errorf("it has stamp %s, want %s", stamps(pod.Annotations), want)
		case pod.Spec.Containers[0].Image != image:
			return fmt.Errorf("it has image %s", pod.Spec.Containers[0].Image)
		case !podReady(pod):
			return fmt.Errorf("it is not ready: %v", pod.Status.ContainerStatuses)
		}

		return nil
	})
}

func podReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// waiting waits until the container of a component waits for a reason, and until an event
// about it tells why.
func waiting(t *testing.T, kube kubernetes.Interface, m *sim.Machine, id, reason, event string) {
	t.Helper()

	eventually(t, id+" in "+reason, func(ctx context.Context) error {
		pod, err := mirror(ctx, kube, m, id)
		if err != nil {
			return err
		}

		if !slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
			return c.State.Waiting != nil && c.State.Waiting.Reason == reason && !c.Ready
		}) {
			return fmt.Errorf("it is %v", pod.Status.ContainerStatuses)
		}

		events, err := kube.CoreV1().Events("kube-system").List(ctx,
			metav1.ListOptions{FieldSelector: "involvedObject.name=" + pod.Name})
		if err != nil {
			return err
		}

		if !slices.ContainsFunc(events.Items,
			func(e corev1.Event) bool { return e.Reason == event && e.Type == corev1.EventTypeWarning }) {
			return fmt.Errorf("no event %s among %d", event, len(events.Items))
		}

		return nil
	})
}

func TestStaticPods_followTheConfiguration(t *testing.T) {
	cp, cluster, kube := oneNode(t)

	for id, image := range map[string]string{
		k8s.APIServerID: apiServerImage, k8s.ControllerManagerID: managerImage, k8s.SchedulerID: schedulerImage,
	} {
		cluster.settled(kube, cp, id, image+":v1.35.2")
	}

	pod, err := mirror(t.Context(), kube, cp, k8s.SchedulerID)
	check(t, err)

	if pod.Labels["tier"] != "control-plane" || pod.Labels["k8s-app"] != k8s.SchedulerID ||
		pod.Status.HostIP != cp.Address().String() ||
		pod.Annotations[corev1.MirrorPodAnnotationKey] == "" || pod.OwnerReferences[0].Name != cp.Hostname() {
		t.Errorf("mirror pod %+v", pod)
	}

	check(t, kube.CoreV1().Pods("kube-system").Delete(t.Context(), pod.Name, metav1.DeleteOptions{}))
	eventually(t, "another mirror pod", func(ctx context.Context) error {
		again, err := mirror(ctx, kube, cp, k8s.SchedulerID)
		if err == nil && again.UID == pod.UID {
			err = errors.New("it is the same")
		}

		return err
	})

	before := cluster.served(cp, k8s.APIServerID)
	version := schedulerVersion(t, cluster, cp)

	cluster.setImage(cp, schedulerImage, "v1.36.0")
	cluster.settledAt(kube, cp, version)

	// The scheduler's configuration is a file beside the API server's, so the API server is replaced, too.
	if after := cluster.served(cp, k8s.APIServerID); after == before {
		t.Errorf("the stamp of kube-apiserver is still %s", after)
	}

	cluster.settled(kube, cp, k8s.APIServerID, apiServerImage+":v1.35.2")
	cluster.settled(kube, cp, k8s.ControllerManagerID, managerImage+":v1.35.2")
}

// settledAt waits for the new scheduler.
func (c *testCluster) settledAt(kube kubernetes.Interface, m *sim.Machine, old string) {
	c.t.Helper()

	eventually(c.t, "new configuration of kube-scheduler", func(context.Context) error {
		if schedulerVersion(c.t, c, m) == old {
			return errors.New("it is the old one")
		}

		return nil
	})
	c.settled(kube, m, k8s.SchedulerID, schedulerImage+":v1.36.0")

	pod, err := mirror(c.t.Context(), kube, m, k8s.SchedulerID)
	check(c.t, err)

	if got, want := pod.Annotations[constants.AnnotationStaticPodConfigVersion], schedulerVersion(c.t, c, m); got != want {
		c.t.Errorf("config version of the pod is %s, want that of the configuration, %s", got, want)
	}
}

func schedulerVersion(t *testing.T, c *testCluster, m *sim.Machine) string {
	t.Helper()

	r, err := c.secure(m).COSI.Get(t.Context(),
		resource.NewMetadata(k8s.ControlPlaneNamespaceName, k8s.SchedulerConfigType, k8s.SchedulerID,
			resource.VersionUndefined))
	check(t, err)

	return r.Metadata().Version().String()
}

func TestStaticPods_brokenComponentCrashes(t *testing.T) {
	cp, cluster, kube := oneNode(t)
	cluster.settled(kube, cp, k8s.SchedulerID, schedulerImage+":v1.35.2")

	cp.BreakComponent(k8s.SchedulerID, "v1.36.0")
	cluster.setImage(cp, schedulerImage, "v1.36.0")
	waiting(t, kube, cp, k8s.SchedulerID, "CrashLoopBackOff", "BackOff")

	eventually(t, "the machine to notice", func(context.Context) error {
		want := fmt.Sprintf("staticPods: kube-system/%s-%s not ready", k8s.SchedulerID, cp.Hostname())
		if _, unmet := cp.Ready(); !slices.Contains(unmet, want) {
			return fmt.Errorf("unmet: %v, want %s", unmet, want)
		}

		return nil
	})

	cp.RepairComponent(k8s.SchedulerID, "v1.36.0")
	cluster.settled(kube, cp, k8s.SchedulerID, schedulerImage+":v1.36.0")
	check(t, cp.AwaitReady(within(t, time.Minute)))
}

// A kube-apiserver that crashes leaves its machine without one; the kubelet there tells
// about it through the others, as KubePrism lets it.
func TestStaticPods_brokenAPIServerLeavesTheOthers(t *testing.T) {
	simulator := sim.ForTest(t, sim.Options{Log: t.Logf})
	cps := addMachines(t, simulator, "cp", 3)
	cluster := newTestCluster(t, simulator)
	cluster.create(cps, nil)

	own, other := cluster.apiOf(cps[1]), cluster.apiOf(cps[2])
	eventually(t, "API of cp-2", func(context.Context) error { return serves(own, "v1.35.2") })
	eventually(t, "API of cp-3", func(context.Context) error { return serves(other, "v1.35.2") })

	cps[1].BreakComponent(k8s.APIServerID, "v1.36.0")
	cluster.setImage(cps[1], apiServerImage, "v1.36.0")
	waiting(t, other, cps[1], k8s.APIServerID, "CrashLoopBackOff", "BackOff")

	if err := serves(own, "v1.35.2"); err == nil {
		t.Error("the old kube-apiserver still runs")
	}

	check(t, serves(other, "v1.35.2"))

	cluster.setImage(cps[1], apiServerImage, "v1.35.2")
	cluster.settled(other, cps[1], k8s.APIServerID, apiServerImage+":v1.35.2")
	eventually(t, "the old version again", func(context.Context) error { return serves(own, "v1.35.2") })
}

// A duplicate exemption of PodSecurity keeps kube-apiserver from starting, and stops a running one.
func TestStaticPods_exemptionTwice(t *testing.T) {
	simulator := sim.ForTest(t, sim.Options{Log: t.Logf})
	cps := addMachines(t, simulator, "cp", 3)
	cluster := newTestCluster(t, simulator)
	cluster.create(cps, nil)

	own, other := cluster.apiOf(cps[1]), cluster.apiOf(cps[2])
	eventually(t, "API of cp-2", func(context.Context) error { return serves(own, "v1.35.2") })
	eventually(t, "API of cp-3", func(context.Context) error { return serves(other, "v1.35.2") })

	cluster.rewrite(cps[1], `(?m)^( *)- kube-system$`, "$1- kube-system\n$1- kube-system")
	waiting(t, other, cps[1], k8s.APIServerID, "CrashLoopBackOff", "BackOff")

	if err := serves(own, "v1.35.2"); err == nil {
		t.Error("the former kube-apiserver still runs")
	}

	cluster.rewrite(cps[1], `(?m)^ *- kube-system\n( *- kube-system)$`, "$1")
	cluster.settled(other, cps[1], k8s.APIServerID, apiServerImage+":v1.35.2")
	eventually(t, "the API again", func(context.Context) error { return serves(own, "v1.35.2") })
}

func TestStaticPods_missingImage(t *testing.T) {
	cp, cluster, kube := oneNode(t)
	simulator := cluster.sim
	cluster.settled(kube, cp, k8s.ControllerManagerID, managerImage+":v1.35.2")

	check(t, simulator.SetImage(managerImage+":v1.36.9", images.Image{Missing: true}))
	check(t, simulator.SetImage(kubeletImage+":v1.36.9", images.Image{Missing: true}))

	for namespace, image := range map[common.ContainerdNamespace]string{
		common.ContainerdNamespace_NS_CRI: managerImage, common.ContainerdNamespace_NS_SYSTEM: kubeletImage,
	} {
		if _, err := cluster.pullLegacy(cp, namespace, image+":v1.36.9"); status.Code(err) != codes.NotFound {
			t.Errorf("pull of %s that is missing: %v", image, err)
		}

		check(t, second(cluster.pullLegacy(cp, namespace, image+":v1.36.0")))
	}

	cluster.setImage(cp, managerImage, "v1.36.9")
	waiting(t, kube, cp, k8s.ControllerManagerID, "ImagePullBackOff", "Failed")

	cluster.setImage(cp, kubeletImage, "v1.36.9")
	eventually(t, "the kubelet to fail", func(ctx context.Context) error { return kubeletIn(ctx, cluster, cp, "Failed") })

	cluster.setImage(cp, managerImage, "v1.36.0")
	cluster.setImage(cp, kubeletImage, "v1.36.0")
	cluster.settled(kube, cp, k8s.ControllerManagerID, managerImage+":v1.36.0")
	check(t, cp.AwaitReady(within(t, time.Minute)))
}

func (c *testCluster) pullLegacy(
	m *sim.Machine, namespace common.ContainerdNamespace, image string,
) (*machine.ImagePullResponse, error) {
	c.t.Helper()

	return c.secure(m).MachineClient.ImagePull(c.t.Context(),
		&machine.ImagePullRequest{Namespace: namespace, Reference: image})
}

func kubeletIn(ctx context.Context, c *testCluster, m *sim.Machine, state string) error {
	list, err := c.secure(m).ServiceList(ctx)
	if err != nil {
		return err
	}

	for _, s := range list.GetMessages()[0].GetServices() {
		if s.GetId() == "kubelet" && s.GetState() != state {
			return fmt.Errorf("the kubelet is %s", s.GetState())
		}
	}

	return nil
}

// The controller of nodes marks the pods of a node that is not ready as not ready, too; the kubelet puts that right.
func TestMirrorPod_markedNotReady(t *testing.T) {
	t.Parallel()

	simulator := sim.ForTest(t, sim.Options{Assets: filepath.Dir(asset(t, "kube-apiserver"))})
	cp := addMachines(t, simulator, "cp", 1)[0]
	cluster := newTestCluster(t, simulator)
	cluster.create([]*sim.Machine{cp}, nil)

	pods := cluster.kubernetes(cp).CoreV1().Pods(metav1.NamespaceSystem)
	name := "kube-apiserver-" + cp.Hostname()

	eventually(t, "mark of the controller", func(ctx context.Context) error {
		pod, err := pods.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}

		if !podReady(pod) {
			return errors.New("the pod is not ready yet")
		}

		for i := range pod.Status.Conditions {
			if pod.Status.Conditions[i].Type == corev1.PodReady {
				pod.Status.Conditions[i].Status = corev1.ConditionFalse
			}
		}

		_, err = pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})

		return err
	})

	eventually(t, "readiness", func(ctx context.Context) error {
		pod, err := pods.Get(ctx, name, metav1.GetOptions{})
		if err == nil && !podReady(pod) {
			err = errors.New("the pod stays not ready")
		}

		return err
	})
}

// TestStaticPods_renderedFromFinalConfigurations: from Talos 1.14 on, pods are rendered from resources of their own.
func TestStaticPods_renderedFromFinalConfigurations(t *testing.T) {
	t.Parallel()

	for version, final := range map[string]bool{"v1.13.6": false, "v1.14.1": true} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()

			cluster, cps := upgradeSite(t, 1, sim.Options{TalosVersion: version})
			talos := cluster.secure(cps[0])

			for _, tag := range []string{"v1.35.2", "v1.35.3"} {
				cluster.setImage(cps[0], apiServerImage, tag)

				id := k8s.APIServerConfigID
				if final {
					id = k8s.FinalAPIServerConfigID
				}

				eventually(t, "pod of "+tag, func(ctx context.Context) error {
					config, err := safe.StateGetByID[*k8s.APIServerConfig](ctx, talos.COSI, id)
					if err != nil {
						return err
					}

					pod, of := cluster.served(cps[0], k8s.APIServerID), config.Metadata().Version().String()
					if spec := config.TypedSpec(); spec.Image != apiServerImage+":"+tag || !strings.HasPrefix(pod, of+"/") ||
						final != slices.Equal(spec.Args, []string{"/usr/local/bin/kube-apiserver"}) {
						return fmt.Errorf("pod %s of version %s: %+v", pod, of, spec)
					}

					return nil
				})
			}

			_, err := safe.StateGetByID[*k8s.SchedulerConfig](t.Context(), talos.COSI, k8s.FinalSchedulerConfigID)
			if final != (err == nil) || err != nil && !state.IsNotFoundError(err) {
				t.Errorf("final configuration of the scheduler: %v", err)
			}
		})
	}
}
