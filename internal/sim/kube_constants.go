package sim

import (
	"time"
)

// healthPeriod is how often etcd's health is checked besides after changes.
const healthPeriod = 250 * time.Millisecond

// joinRetry and promoteRetry replace Talos's 3 and 15 seconds between attempts.
const joinRetry = 5 * time.Millisecond

// kubeletRetry is the pause after a failed request to the Kubernetes API.
const kubeletRetry = 20 * time.Millisecond

// endpointPort is where control-plane machines serve Kubernetes on their own address
// when the configuration says nothing else.
const endpointPort = 6443

// crashPause stands for a kubelet's back-off, which begins with ten seconds and doubles.
const crashPause = 50 * time.Millisecond
