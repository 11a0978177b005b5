package health

import (
	"github.com/hashicorp/terraform-plugin-framework-timeouts/datasource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	clusterhealth "github.com/talosop/terraform-provider-talosop/internal/cluster/health"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

type etcdMembersModel struct {
	Cluster   types.Object   `tfsdk:"cluster"`
	Timeouts  timeouts.Value `tfsdk:"timeouts"`
	Healthy   types.Bool     `tfsdk:"healthy"`
	Reachable types.Bool     `tfsdk:"reachable"`
	Cause     types.String   `tfsdk:"cause"`
	Quorum    types.Int64    `tfsdk:"quorum"`
	Alarms    types.List     `tfsdk:"alarms"`
	Members   types.List     `tfsdk:"members"`
}

func etcdMembersAttributes() map[string]schema.Attribute {
	attributes := examinedAttributes()

	attributes["healthy"] = tf.ComputedBool("Whether etcd has quorum, every control plane has a healthy member, all " +
		"members agree on leader and members, and no alarm is active. These are the conditions of " +
		"`talosop_cluster_health` whose names begin with `Etcd`.")
	attributes["reachable"] = tf.ComputedBool("Whether any member answered. It is also `true` for an etcd without " +
		"quorum, whose members answer but know no leader. Such an etcd does not list its members.")
	attributes["cause"] = tf.ComputedString("Why the member list is not available, with the control planes that the " +
		"provider asked; null if it is available.")
	attributes["quorum"] = tf.ComputedNumber("How many voting members must work: more than half of them. Null if the " +
		"member list is not available.")
	attributes["alarms"] = tf.ComputedStrings("Active alarms, such as `NOSPACE on cp-1`, sorted. Also empty if no " +
		"member answers.")
	attributes["members"] = tf.ComputedObjectList("The members, sorted by name. Empty if the member list is not "+
		"available.",
		memberAttributes())

	return attributes
}

func memberAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"id": tf.ComputedString("ID of the member, hexadecimal, as `talosctl etcd members` prints it."),
		"name": tf.ComputedString("Name of the member: the hostname of its machine. Null for a member that was added and " +
			"never started."),
		"peer_urls": tf.ComputedStrings("URLs at which the other members reach it, such as `https://10.0.0.11:2380`."),
		"learner":   tf.ComputedBool("Whether the member is a learner, which catches up and does not vote yet."),
		"leader":    tf.ComputedBool("Whether a member reports that it is the leader."),
		"healthy": tf.ComputedBool("Whether the member votes, answers on its machine, follows a leader, raised no alarm " +
			"and reports no error."),
		"errors": tf.ComputedStrings("Why the member is not healthy, including the errors that it reports; empty if it " +
			"is healthy. An alarm belongs to the member that raised it."),
	}
}

var memberType = tf.ObjectOf(memberAttributes())

// Fill puts the assessment of etcd into the model.
func (m *etcdMembersModel) Fill(etcd clusterhealth.Etcd) {
	m.Healthy = types.BoolValue(etcd.Healthy())
	m.Reachable = types.BoolValue(etcd.Reachable)
	m.Cause = tf.TextOrNull(etcd.Cause)
	m.Alarms = tf.TextList(etcd.Alarms)

	m.Quorum = types.Int64Null()
	if etcd.Quorum > 0 {
		m.Quorum = types.Int64Value(int64(etcd.Quorum))
	}

	members := make([]attr.Value, len(etcd.Members))
	for i, e := range etcd.Members {
		members[i] = types.ObjectValueMust(memberType.AttrTypes, map[string]attr.Value{
			"id": types.StringValue(e.ID), "name": tf.TextOrNull(e.Name), "peer_urls": tf.TextList(e.PeerURLs),
			"learner": types.BoolValue(e.Learner), "leader": types.BoolValue(e.Leader),
			"healthy": types.BoolValue(len(e.Errors) == 0), "errors": tf.TextList(e.Errors),
		})
	}

	m.Members = types.ListValueMust(memberType, members)
}
