package cluster

// Decisions about machines that leave, which tests compare as values.
var (
	NodeOfRemoved   = nodeOfRemoved
	MemberOfRemoved = memberOfRemoved
	Renamed         = renamed
	IsOtherNode     = Machine.isOtherNode
)
