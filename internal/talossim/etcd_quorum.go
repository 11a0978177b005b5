package talossim

// voters counts voting members and those of them that run.
func (c *modelCluster) voters() (all, running int) {
	for _, m := range c.members {
		if m.learner {
			continue
		}

		all++

		if m.running {
			running++
		}
	}

	return all, running
}

// elect keeps the leader while it can lead, and finds another one when there is quorum.
func (c *modelCluster) elect() {
	all, running := c.voters()
	if running < all/2+1 {
		c.leader = nil

		return
	}

	if c.leader != nil && c.leader.running && !c.leader.learner && c.has(c.leader) {
		return
	}

	for _, m := range c.members {
		if m.running && !m.learner {
			c.leader = m
			c.term++

			return
		}
	}
}

func (c *modelCluster) has(member *modelMember) bool {
	for _, m := range c.members {
		if m == member {
			return true
		}
	}

	return false
}

func (c *modelCluster) drop(member *modelMember) {
	for i, m := range c.members {
		if m == member {
			c.members = append(c.members[:i:i], c.members[i+1:]...)

			break
		}
	}

	c.index++
	c.elect()
}

// removable is etcd's strict reconfiguration check: enough started voters must remain,
// and a member that is up may go only if the others keep quorum.
func (c *modelCluster) removable(member *modelMember) error {
	if member.learner {
		return nil
	}

	remaining, started := 0, 0

	for _, m := range c.members {
		if m == member || m.learner {
			continue
		}

		remaining++

		if m.started {
			started++
		}
	}

	if remaining == 0 || started < remaining/2+1 {
		return errNotEnough
	}

	if !member.running {
		return nil
	}

	if all, running := c.voters(); running-1 < 1+(all-1)/2 {
		return errUnhealthy
	}

	return nil
}
