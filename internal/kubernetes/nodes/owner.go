package nodes

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// ownerMark is the annotation with the id of the resource that owns the machine of a node, and after a space the
// proof that a holder of the secrets bundle wrote it.
//
// The proof is needed because a kubelet can write every annotation of its own node (Kubernetes, Node authorizer
// and NodeRestriction). And a holder of the cluster token gets a certificate of any kubelet (Talos 1.14,
// k8stemplates/csr.go: such requests are approved). The proof covers the name and the UID of the Node object. So a
// mark copied from another node, or from a deleted object, proves nothing. The API server chooses the UID, and a
// kubelet cannot delete its node.
const ownerMark = "talosop.dev/owner"

// errNoOwnerKey is a client without [api.Options.OwnerKeys].
var errNoOwnerKey = errors.New("this client has no key for owner marks")

// Own marks a node as that of a machine of the resource with that id, in the place of any other mark; an empty id takes
// the mark off. Idempotent.
func (n *Nodes) Own(ctx context.Context, name, owner string) error {
	keys := n.api.Options.OwnerKeys

	if owner != "" && len(keys) == 0 {
		return wait.Permanent(fmt.Errorf("mark node %s with its owner: %w", name, errNoOwnerKey))
	}

	err := n.changeNode(ctx, name, func(node *corev1.Node) *nodePatch {
		if owner == "" {
			if _, has := node.Annotations[ownerMark]; !has {
				return nil
			}

			return annotate(ownerMark, nil, nil)
		}

		if is, proven := ownerOf(node, keys); proven && is == owner {
			return nil
		}

		mark := owner + " " + hex.EncodeToString(ownerProof(keys[0], node, owner))

		return annotate(ownerMark, &mark, nil)
	})
	if err != nil {
		return fmt.Errorf("mark node %s with its owner: %w", name, api.WithoutURL(err))
	}

	return nil
}

// ownerOf is the owner that the mark of a node names, and whether one of the keys proves it; empty without a mark.
func ownerOf(node *corev1.Node, keys [][]byte) (owner string, proven bool) {
	owner, proof, _ := strings.Cut(node.Annotations[ownerMark], " ")

	given, err := hex.DecodeString(proof)
	if err != nil || owner == "" {
		return owner, false
	}

	for _, key := range keys {
		if hmac.Equal(given, ownerProof(key, node, owner)) {
			return owner, true
		}
	}

	return owner, false
}

// ownerProof authenticates that a resource owns the machine of a node.
func ownerProof(key []byte, node *corev1.Node, owner string) []byte {
	mac := hmac.New(sha256.New, key)
	// Neither the name nor the UID of an object has a zero byte.
	mac.Write(fmt.Appendf(nil, "%s\x00%s\x00%s", node.Name, node.UID, owner))

	return mac.Sum(nil)
}
