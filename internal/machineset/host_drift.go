package machineset

// HostDrift is how the objects of a machine on its host cluster differ from what is wanted, by what an apply does about
// it.
type HostDrift struct {
	// Repairs are put right before the first step.
	Repairs []string
	// VolumesLost machines get new volumes in a step.
	VolumesLost bool
	// Replace is why a step replaces the pod, empty when none does.
	Replace string
	// Stays is what no apply puts right.
	Stays []string
}

// Drift is what state records of it: why a pod is replaced comes last of what is put right.
func (d HostDrift) Drift() Drift {
	var drift Drift

	for _, repair := range d.Repairs {
		drift = append(drift, Difference{Kind: HostDiffers, Text: repair})
	}

	if d.VolumesLost {
		drift = append(drift, Difference{Kind: HostVolumesLost})
	}

	if d.Replace != "" {
		drift = append(drift, Difference{Kind: HostDiffers, Text: d.Replace})
	}

	for _, stays := range d.Stays {
		drift = append(drift, Difference{Kind: HostStays, Text: stays})
	}

	return drift
}

// OnHost is what of a drift is of the host cluster. replaced is whether the pod of the machine is to be replaced.
func (d Drift) OnHost(replaced bool) HostDrift {
	var host HostDrift

	for _, difference := range d {
		switch difference.Kind {
		case HostDiffers:
			host.Repairs = append(host.Repairs, difference.Text)
		case HostVolumesLost:
			host.VolumesLost = true
		case HostStays:
			host.Stays = append(host.Stays, difference.Text)
		default:
		}
	}

	if last := len(host.Repairs) - 1; replaced && last >= 0 {
		host.Replace, host.Repairs = host.Repairs[last], host.Repairs[:last]
	}

	return host
}
