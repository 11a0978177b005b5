package release

import (
	"errors"
	"fmt"
	"strings"
)

// Reasons why a release is left as it is.
var (
	// ErrExists is a create that finds a release that is not its own.
	ErrExists = errors.New("the release already exists")
	// ErrBusy is a release that another client is working on.
	ErrBusy = errors.New("another client works on the release")
	// ErrUnreadable is a history whose newest record cannot be read.
	ErrUnreadable = errors.New("the latest record of the release cannot be read")
	// ErrKubernetes is a chart for other versions of Kubernetes.
	ErrKubernetes = errors.New("the chart does not support the Kubernetes version of the cluster")
	// ErrChart is a chart with a file that Kubernetes cannot have, with any values.
	ErrChart = errors.New("the chart contains an invalid file")
	// ErrTemplate is a chart that cannot be rendered.
	ErrTemplate = errors.New("the chart cannot be rendered")
	// ErrMissing is a chart that cannot be rendered and asks for kinds or objects that the cluster lacks and
	// another release may create. Whether that is why it fails is unknown. Such an error is ErrTemplate too.
	ErrMissing = errors.New("the templates use kinds or objects that the cluster may not have yet")
	// ErrType is a chart that makes an object of the values that Kubernetes cannot read.
	ErrType = errors.New("the chart renders an object that Kubernetes cannot decode")
	// ErrValues are values that the chart's schema forbids.
	ErrValues = errors.New("the values do not match the schema of the chart")
	// ErrSchema is a chart whose schema of values is not whole in itself.
	ErrSchema = errors.New("the schema of the chart has external references")
	// ErrWithheld is a chart that looks up Secrets, which only an apply lets it read.
	ErrWithheld = errors.New("the templates look up a Secret, and plans do not read Secrets")
	// ErrPatch are patches that do not match the rendered chart.
	ErrPatch = errors.New("the patches do not apply to the rendered chart")
	// ErrOwned means that objects of the chart exist and have another owner.
	ErrOwned = errors.New("objects of the chart exist and have another owner")
)

// FailedError is a release that could not be made what is wanted. What was done is in Helm's
// history, and applying again recovers it.
type FailedError struct {
	Name Name
	// Verb is install, upgrade, roll back or uninstall.
	Verb string
	// Cause is Helm's reason.
	Cause error
	// Diagnosis lists the objects that are not ready, each with its reason, last event and last log
	// lines.
	Diagnosis []string
	// Next is the state of the release, and what to do.
	Next string
}

// Error implements error.
func (e *FailedError) Error() string {
	text := &strings.Builder{}
	// Helm ends some of its errors with empty lines.
	fmt.Fprintf(text, "%s release %s: %s", e.Verb, e.Name, strings.TrimSpace(e.Cause.Error()))

	for _, line := range e.Diagnosis {
		fmt.Fprintf(text, "\n- %s", line)
	}

	if e.Next != "" {
		fmt.Fprintf(text, "\n%s", e.Next)
	}

	return text.String()
}

// Unwrap gives the cause.
func (e *FailedError) Unwrap() error { return e.Cause }
