// Package statuspage renders a cluster, or a running apply, as one HTML page: it needs no other file, loads nothing
// and runs no code. It follows the light or dark theme of the reader, and prints.
//
// [Page] has values and no markup. [HTML] escapes every text, because the owner of a machine controls its names and
// messages.
package statuspage

import "time"

// Page is the content of a page.
type Page struct {
	// Time of the observation.
	Time     time.Time
	Clusters []Cluster
}

// Run is an apply: the work of the resources of one process on a cluster.
type Run struct {
	Began time.Time
	// Resources of the apply that worked on machines so far, such as "cluster prod".
	Resources []Resource
	// Steps in the order in which they began.
	Steps []Step
	// Next are steps that did not begin, in order; the last ones of a long apply are missing.
	Next []Step
	// Waits are machines, or whole resources, that wait now.
	Waits []Wait
}

// Resource is the work on one resource.
type Resource struct {
	Name string
	// Ended is true once the work on the resource is over, and Failure says why it failed; empty when it did not.
	Ended   bool
	Failure string
}

// Step is one step of an apply.
type Step struct {
	Machine, Text string
	State         StepState
	// Reason is why it failed, or the last note about it.
	Reason string
	// Began is when it started, Elapsed how long it took, and Usual how long such a step usually takes; zero when
	// unknown.
	Began          time.Time
	Elapsed, Usual time.Duration
}

// StepState is the state of a step that began.
type StepState string

// The states of steps.
const (
	Running  StepState = "running"
	Finished StepState = "finished"
	Failed   StepState = "failed"
)

// Wait is why a machine waits; Machine is empty for a whole resource.
type Wait struct{ Machine, Reason string }

// Cluster is one cluster of a page. Parts that are nil are not known, and the page leaves them out.
type Cluster struct {
	Name, Endpoint string
	State          State
	// Run is the apply that writes the page; nil for an observation alone, whose page shows the date and no time of day.
	Run           *Run
	ControlPlanes []Machine
	Pools         []Pool
	Etcd          *Etcd
	Versions      []Version
	Certificates  []Certificate
	Backups       []Backup
	Drift         []Drift
	Operations    []string
	Conditions    []Condition
}

// Drift is how a machine differs from the last apply.
type Drift struct {
	Machine string
	Lines   []string
}

// State is the state of a cluster or of a condition.
type State string

// The states.
const (
	Good    State = "good"
	Bad     State = "bad"
	Unknown State = "unknown"
)

// Pool is a group of workers. A pool without a name is the only one.
type Pool struct {
	Name     string
	Machines []Machine
}

// Machine is one machine of a cluster.
type Machine struct {
	Name, Address string
	// Problems are empty for a machine that works.
	Problems []Problem
	// Talos and Kubernetes are its versions; empty when unknown.
	Talos, Kubernetes string
	// Member is its part in etcd; empty for none, or when it is unknown.
	Member Member
}

// Problem is what a person should know of a machine that does not work as wanted.
type Problem struct {
	Kind Kind
	Text string
}

// Member is the part of a machine in etcd.
type Member string

// The parts in etcd.
const (
	Leader   Member = "leader"
	Follower Member = "member"
	Learner  Member = "learner"
)

// Etcd is the etcd of a cluster.
type Etcd struct {
	// Members and Healthy are counts, and Quorum is how many must work.
	Members, Healthy, Quorum int
	// Cause says why the members are not known; empty when they are.
	Cause  string
	Alarms []string
}

// Version is one product in the versions that machines run.
type Version struct {
	Product string
	// Wanted is the version of the cluster; empty when unknown.
	Wanted string
	// Running counts machines by version, the most frequent first.
	Running []VersionCount
}

// VersionCount is how many machines run a version.
type VersionCount struct {
	Version  string
	Machines int
}

// Certificate is one certificate that expires.
type Certificate struct {
	Name, Server string
	Until        time.Time
	Due          bool
	// Renewed is true for a certificate that Talos replaces several times a week, so that its remaining time says
	// nothing.
	Renewed bool
}

// Backup is an etcd snapshot in a store.
type Backup struct {
	Key  string
	Time time.Time
	// Problem is why it cannot be restored; empty when it can.
	Problem string
}

// Condition is one statement about a cluster.
type Condition struct {
	Name   string
	State  State
	Reason string
	// Since is when its state changed; zero when unknown.
	Since time.Time
}
