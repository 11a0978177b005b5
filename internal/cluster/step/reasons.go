package step

// Hold says why work must wait. Time, or the machine itself, may lift it.
type Hold struct {
	// Machine the hold is about; empty for the cluster as a whole.
	Machine string
	Reason  string
}

func (h Hold) String() string { return about(h.Machine, h.Reason) }

// Refusal says why nothing may be sent at all. Waiting does not lift it; the user has to change something.
type Refusal struct {
	Machine string
	Reason  string
	// Remedy is what the user can do.
	Remedy string
}

func (r Refusal) String() string { return about(r.Machine, r.Reason+". "+r.Remedy) }

// Kept is a change that is not made because of a lock, or that is left to a later run.
type Kept struct {
	Step Step
	// Reason names the machine that is locked, or what the change waits for.
	Reason string
}

func (k Kept) String() string { return "held, " + k.Reason + ": " + k.Step.String() }

func about(machine, text string) string {
	if machine == "" {
		return text
	}

	return machine + ": " + text
}
