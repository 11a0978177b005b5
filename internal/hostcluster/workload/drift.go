package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
)

// Drift detection. An object matches when the fields that talosop owns in it have the values that talosop would
// set now. Ownership is the host's own record (metadata.managedFields). A field that another client changed
// belongs to that client from then on, and a field that talosop no longer wants is still its own. What the API
// server filled in has no owner. This takes no request beyond the lists of an observation, whatever the number of
// machines, and needs no knowledge of defaults. For an apparent difference only, talosop asks the host what an
// apply would change (a dry run). Other clients may own a field with the same value, and webhooks may change the
// result. What an apply would not change is no drift, so a webhook that rewrites an object causes no endless
// drift.
//
// Fields that other clients added beside talosop's own belong to them, as everywhere with server-side apply.

// differs reports whether an apply might change something.
func differs(k *Kind, live Object, body fields) (bool, error) {
	owned, err := ownedFields(k, live)
	if err != nil {
		return false, err
	}

	return !owned.equal(body), nil
}

// differences returns the differences between an object and the result of an apply of body, and which of them are
// in the pod template. If the host refuses that apply, it is one difference with the host's reason.
func (h *Client) differences(
	ctx context.Context, k *Kind, live Object, body fields,
) (template, others []Difference, err error) {
	if mayDiffer, err := differs(k, live, body); err != nil || !mayDiffer {
		return nil, nil, err
	}

	found, err := liveFields(k, live)
	if err != nil {
		return nil, nil, err
	}

	became, err := h.apply(ctx, k, live.GetNamespace(), body.only(live), applyMode{force: true, dryRun: true})

	switch {
	case err == nil:
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return nil, []Difference{{Object: k.ref(live), Cause: Changing}}, nil
	case refused(err):
		return nil, []Difference{{Object: k.ref(live), Cause: Refused, Reason: err.Error()}}, nil
	default:
		return nil, nil, fmt.Errorf("compare %s on %s: %w", k.Of(live), h, err)
	}

	wanted, err := liveFields(k, became)
	if err != nil {
		return nil, nil, err
	}

	for _, d := range objects.Differences(found, wanted) {
		if difference := fieldDifference(k.ref(live), d, nil); difference.ofTemplate() {
			template = append(template, difference)
		} else {
			others = append(others, difference)
		}
	}

	return template, others, nil
}

// refused reports whether the host answered with a refusal: the answer is about the object, and a retry gives the
// same.
func refused(err error) bool {
	var status apierrors.APIStatus

	return errors.As(err, &status) && slices.ContainsFunc([]func(error) bool{
		apierrors.IsInvalid, apierrors.IsForbidden, apierrors.IsBadRequest, apierrors.IsRequestEntityTooLargeError,
	}, func(is func(error) bool) bool { return is(err) })
}
