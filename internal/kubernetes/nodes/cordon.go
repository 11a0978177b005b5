package nodes

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

const (
	// cordonMark is the annotation on nodes that talosop cordoned, which shows that the cordon is its own. Its
	// value is the time and, after a space, [api.Options.Name], to explain a node that was left cordoned.
	cordonMark = "talosop.dev/cordoned"
	// talosMark is the annotation on nodes that Talos cordoned, and will uncordon, by
	// itself (Talos 1.13, constants.AnnotationCordonedKey).
	talosMark = "talos.dev/cordoned"
	// stagedMark is the annotation on nodes whose machines have a configuration for their next boot. Its value is the id
	// of the boot in which it was stored: it means nothing in a later one.
	stagedMark = "talosop.dev/staged-in-boot"
	// resetMark is the annotation on nodes whose machines talosop reset and that stayed in the cluster. Its value is the
	// time of the last reset.
	resetMark = "talosop.dev/reset"
	// soakMark is the annotation on changed nodes of a canary pool until their soak has ended. Its value is when it began,
	// or soakDue.
	soakMark = "talosop.dev/canary-soak"
	soakDue  = "due"
)

func marked(node *corev1.Node) bool {
	_, is := node.Annotations[cordonMark]

	return is
}

// markOf reads the mark of a node.
func markOf(node *corev1.Node) (at time.Time, by string) {
	when, by, _ := strings.Cut(node.Annotations[cordonMark], " ")

	at, err := time.Parse(time.RFC3339, when)
	if err != nil {
		return time.Time{}, ""
	}

	return at, by
}

// Cordon makes a node unschedulable and marks it, in one update of the node as it was read. A node that another
// client cordoned, a person or Talos, stays as it is and gets no mark, so that [Nodes.Uncordon] leaves it alone.
// Idempotent.
func (n *Nodes) Cordon(ctx context.Context, name string) error {
	err := n.changeNode(ctx, name, func(node *corev1.Node) *nodePatch {
		if node.Spec.Unschedulable {
			return nil
		}

		value := time.Now().UTC().Format(time.RFC3339)
		if by := n.api.Options.Name; by != "" {
			value += " " + by
		}

		return annotate(cordonMark, &value, &nodeSpecPatch{Unschedulable: new(true)})
	})
	if err != nil {
		return fmt.Errorf("cordon node %s: %w", name, api.WithoutURL(err))
	}

	return nil
}

// Uncordon makes a node schedulable and removes the mark. Without the mark it does nothing. It also removes a mark
// that outlived the cordon: another client uncordoned the node meanwhile. If Talos has cordoned the node since, it
// stays so until Talos uncordons it. A node that is gone is not an error. Idempotent.
func (n *Nodes) Uncordon(ctx context.Context, name string) error {
	err := n.changeNode(ctx, name, func(node *corev1.Node) *nodePatch {
		_, talos := node.Annotations[talosMark]

		switch {
		case !marked(node):
			return nil
		case talos || !node.Spec.Unschedulable:
			return annotate(cordonMark, nil, nil)
		default:
			return annotate(cordonMark, nil, &nodeSpecPatch{})
		}
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("uncordon node %s: %w", name, api.WithoutURL(err))
	}

	return nil
}

// NoteStaged notes on a node that its machine has a configuration for its next boot, or takes that off. The note ends
// with the boot that the node is in. Idempotent.
func (n *Nodes) NoteStaged(ctx context.Context, name string, waits bool) error {
	err := n.changeNode(ctx, name, func(node *corev1.Node) *nodePatch {
		boot := node.Status.NodeInfo.BootID

		switch _, noted := node.Annotations[stagedMark]; {
		case waits && !staged(node):
			return annotate(stagedMark, &boot, nil)
		case !waits && noted:
			return annotate(stagedMark, nil, nil)
		default:
			return nil
		}
	})
	if err != nil {
		return fmt.Errorf("update the staged-configuration annotation of node %s: %w", name, api.WithoutURL(err))
	}

	return nil
}

// NoteReset notes on a node that its machine is reset now. The note stays, so that another run knows of the reset even
// if this one is killed.
func (n *Nodes) NoteReset(ctx context.Context, name string) error {
	now := time.Now().UTC().Format(time.RFC3339)

	err := n.changeNode(ctx, name, func(*corev1.Node) *nodePatch { return annotate(resetMark, &now, nil) })
	if err != nil {
		return fmt.Errorf("update the reset annotation of node %s: %w", name, api.WithoutURL(err))
	}

	return nil
}

func staged(node *corev1.Node) bool {
	boot, noted := node.Annotations[stagedMark]

	return noted && boot == node.Status.NodeInfo.BootID
}

// NoteSoak notes on a node of a canary pool how far its soak is; the zero value takes the note off. Idempotent.
func (n *Nodes) NoteSoak(ctx context.Context, name string, soak kubestate.Soak) error {
	err := n.changeNode(ctx, name, func(node *corev1.Node) *nodePatch {
		value := soakDue
		if !soak.Since.IsZero() {
			value = soak.Since.UTC().Format(time.RFC3339)
		}

		switch noted, is := node.Annotations[soakMark]; {
		case soak.Due && noted != value:
			return annotate(soakMark, &value, nil)
		case !soak.Due && is:
			return annotate(soakMark, nil, nil)
		default:
			return nil
		}
	})
	if err != nil {
		return fmt.Errorf("update the canary annotation of node %s: %w", name, api.WithoutURL(err))
	}

	return nil
}

// soakOf reads the note. One that cannot be read means that the soak has not begun.
func soakOf(node *corev1.Node) (soak kubestate.Soak) {
	value, noted := node.Annotations[soakMark]
	soak.Due = noted

	if since, err := time.Parse(time.RFC3339, value); err == nil {
		soak.Since = since
	}

	return soak
}

// nodePatch is a merge patch of a node. What is nil in it is taken off the node.
type nodePatch struct {
	Metadata struct {
		ResourceVersion string             `json:"resourceVersion"`
		Annotations     map[string]*string `json:"annotations"`
	} `json:"metadata"`
	Spec *nodeSpecPatch `json:"spec,omitempty"`
}

type nodeSpecPatch struct {
	Unschedulable *bool `json:"unschedulable"`
}

func annotate(mark string, value *string, spec *nodeSpecPatch) *nodePatch {
	patch := &nodePatch{Spec: spec}
	patch.Metadata.Annotations = map[string]*string{mark: value}

	return patch
}

// changeNode patches a node as change says, nil for not at all, on the condition that
// the node still is what change saw; it reads again when it is not.
func (n *Nodes) changeNode(ctx context.Context, name string, change func(*corev1.Node) *nodePatch) error {
	ctx, cancel := context.WithTimeoutCause(ctx, n.api.Options.Call,
		fmt.Errorf("the node kept changing for %s", n.api.Options.Call))
	defer cancel()

	var result error

	err := wait.Until(ctx, settle, func(ctx context.Context) error {
		if result = n.tryChange(ctx, name, change); apierrors.IsConflict(result) {
			return result
		}

		return nil
	})

	return cmp.Or(err, result)
}

// tryChange patches once. It returns once the API server's cache, which
// [Nodes.Observe] reads from, has the change.
func (n *Nodes) tryChange(ctx context.Context, name string, change func(*corev1.Node) *nodePatch) error {
	node, err := n.Node(ctx, name, "")
	if err != nil {
		return err
	}

	patch := change(node)
	if patch == nil {
		return nil
	}

	patch.Metadata.ResourceVersion = node.ResourceVersion

	// A patch, because an update would drop fields that this version of the client
	// does not know.
	body, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}

	node, err = n.api.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{})
	if err != nil {
		return err
	}

	_, err = n.Node(ctx, name, node.ResourceVersion)

	return err
}

// Node reads a node: the current one without a version, else one from the server's
// cache that is at least as new.
func (n *Nodes) Node(ctx context.Context, name, version string) (node *corev1.Node, err error) {
	node, err = n.api.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{ResourceVersion: version})

	return node, api.WithoutURL(err)
}
