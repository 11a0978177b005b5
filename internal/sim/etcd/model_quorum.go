package etcd

import "slices"

// voters counts voting members and those of them that run.
func (c *ModelCluster) voters() (all, running int) {
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
func (c *ModelCluster) elect() {
	if c.Leader != nil && c.leads(c.Leader) {
		return
	}

	c.Leader = nil

	// A member that the others know how to reach has the most of them behind it.
	for _, findable := range []bool{true, false} {
		for _, m := range c.members {
			if m.findable() == findable && c.leads(m) {
				c.Leader = m
				c.term++

				return
			}
		}
	}
}

// leads reports whether enough voters run and are in touch with a member.
func (c *ModelCluster) leads(leader *modelMember) bool {
	if !leader.running || leader.learner || !c.has(leader) {
		return false
	}

	all, _ := c.voters()
	behind := 0

	for _, m := range c.members {
		if m.running && !m.learner && m.reaches(leader) {
			behind++
		}
	}

	return behind >= all/2+1
}

// findable reports whether the member is where the cluster looks for it.
func (m *modelMember) findable() bool { return m.peer == m.announced }

// reaches reports whether two members are in touch: either one dials the other at its recorded address, and
// answers use the same connection. Members that all moved at once dial in vain.
func (m *modelMember) reaches(other *modelMember) bool {
	return m == other || m.findable() || other.findable()
}

func (c *ModelCluster) has(member *modelMember) bool { return slices.Contains(c.members, member) }

func (c *ModelCluster) drop(member *modelMember) {
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
func (c *ModelCluster) removable(member *modelMember) error {
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
		return ErrUnhealthy
	}

	return nil
}

// Led reports whether the cluster has a leader.
func (c *ModelCluster) Led() bool {
	c.world.Lock()
	defer c.world.Unlock()

	return c.Leader != nil
}
