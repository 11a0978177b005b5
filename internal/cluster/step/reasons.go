package step

// Hold says why work must wait. It can end with time or because of the machine itself.
type Hold struct {
	// Machine the hold is about; empty for the cluster as a whole.
	Machine string
	Reason  string
}

func (h Hold) String() string { return about(h.Machine, h.Reason) }

// Refusal says why nothing may be sent at all. Waiting does not help; the user must change something.
type Refusal struct {
	Machine string
	Reason  string
	// Remedy is what the user can do.
	Remedy string
}

func (r Refusal) String() string { return about(r.Machine, r.Reason+". "+r.Remedy) }

// Kept is a change that a lock prevents, or that is left to a later run.
type Kept struct {
	Step Step
	// Reason names the locked machine, or what the change waits for.
	Reason string
}

func (k Kept) String() string { return "held, " + k.Reason + ": " + k.Step.String() }

func about(machine, text string) string {
	if machine == "" {
		return text
	}

	return machine + ": " + text
}
