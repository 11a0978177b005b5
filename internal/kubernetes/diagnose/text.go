package diagnose

import (
	"errors"
	"fmt"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
)

// String is such as "Deployment prod/web: Available: 0/2; pod web-1: container main waits: CrashLoopBackOff;
// last event: …; last log lines: …".
func (n NotReady) String() string { return n.Object.String() + ": " + n.Why() }

// Why is the text without the object.
func (n NotReady) Why() string {
	switch {
	case n.Pod != nil && n.Object.Kind == podKind:
		return n.Pod.why()
	case n.Pod != nil && n.Reason == "":
		return n.Pod.String()
	case n.Pod != nil:
		return fmt.Sprintf("%s; %s", n.Reason, n.Pod)
	case n.Reason == "":
		return n.blamed()
	case n.Unknown != nil:
		return n.Reason + "; " + api.OneLine(n.Unknown)
	case n.Events.Name != "":
		return n.Reason + "; " + n.blamed()
	case n.Event != "":
		return n.Reason + "; last event: " + n.Event
	default:
		return n.Reason
	}
}

// blamed is the text about the pods' controller.
func (n NotReady) blamed() string {
	what := "none of its pods has a problem"
	if n.NoPods {
		what = "no pods"
	}

	return fmt.Sprintf("%s; last event about %s %s: %s", what, n.Events.Kind, n.Events.Name, n.Event)
}

// String returns a text such as "pod web-1: container main waits: CrashLoopBackOff; last event: …".
func (p *Pod) String() string { return fmt.Sprintf("pod %s: %s", p.Name, p.why()) }

func (p *Pod) why() string {
	if errors.Is(p.Unknown, errSecret) {
		return api.OneLine(p.Unknown)
	}

	text := p.Reason + "; last event: " + p.Event

	switch {
	case p.Log == nil:
		return text
	case p.Unknown != nil:
		return text + "; cannot read its log: " + api.OneLine(p.Unknown)
	case strings.TrimSpace(*p.Log) == "":
		return text + "; its log is empty"
	default:
		return text + "; last log lines: " + lastLines(*p.Log)
	}
}
