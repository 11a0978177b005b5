package kube

import (
	"time"
)

// HealthPeriod is how often etcd's health is checked besides after changes.
const HealthPeriod = 250 * time.Millisecond

// JoinRetry and promoteRetry replace Talos's 3 and 15 seconds between attempts.
const JoinRetry = 5 * time.Millisecond

// KubeletRetry is the pause after a failed request to the Kubernetes API.
const KubeletRetry = 20 * time.Millisecond

// EndpointPort is where control-plane machines serve Kubernetes on their own address
// when the configuration says nothing else.
const EndpointPort = 6443

// CrashPause stands for a kubelet's back-off, which begins with ten seconds and doubles.
const CrashPause = 50 * time.Millisecond
