package health

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Condition is one statement about a cluster; True is good.
type Condition struct {
	Name   string
	Status Status
	// Reason names what is wrong, or counts what is right. It depends on the state of the cluster and not on the time.
	Reason string
	// Since is the last change of the condition according to its source; zero where the source does not report it.
	Since time.Time
}

// Status is the status of a condition, as in Kubernetes.
type Status string

// The statuses. Unknown means that the source was not reached.
const (
	True    Status = "True"
	False   Status = "False"
	Unknown Status = "Unknown"
)

// notInTime is the cause of a silence without an error.
const notInTime = "timed out waiting for a response"

// The names of the conditions, in their order.
const (
	TalosAPIReachable  = "TalosAPIReachable"
	ControlPlanesReady = "ControlPlanesReady"
	EtcdQuorum         = "EtcdQuorum"
	EtcdMembersHealthy = "EtcdMembersHealthy"
	EtcdAgreement      = "EtcdAgreement"
	EtcdNoAlarms       = "EtcdNoAlarms"
	KubernetesAPI      = "KubernetesAPI"
	EndpointReachable  = "EndpointReachable"
	NodesReady         = "NodesReady"
	NodesSchedulable   = "NodesSchedulable"
	CertificatesValid  = "CertificatesValid"
)

func allTrue(conditions []Condition) bool {
	return !slices.ContainsFunc(conditions, func(c Condition) bool { return c.Status != True })
}

// judged is False for bad parts, otherwise Unknown for unsure parts, otherwise True.
func judged(name string, bad, unsure []string, good string) Condition {
	switch {
	case len(bad) > 0:
		return Condition{Name: name, Status: False, Reason: listed(slices.Concat(bad, unsure))}
	case len(unsure) > 0:
		return Condition{Name: name, Status: Unknown, Reason: listed(unsure)}
	default:
		return Condition{Name: name, Status: True, Reason: good}
	}
}

// listed joins the parts of a reason; it names the first ones of many.
func listed(parts []string) string {
	const most = 20

	if more := len(parts) - most; more > 0 {
		parts = append(slices.Clone(parts[:most]), fmt.Sprintf("%d more", more))
	}

	return strings.Join(parts, ", ")
}
