package session

// defaultSlots is how many sessions work at a time, unless told otherwise.
const defaultSlots = 3

// Slots bound how many sessions of a process work at a time, and keep what they share.
type Slots struct{ free chan struct{} }

// NewSlots makes n of them, 3 for 0.
func NewSlots(n int) *Slots {
	if n == 0 {
		n = defaultSlots
	}

	return &Slots{free: make(chan struct{}, n)}
}
