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

	attributes["healthy"] = tf.ComputedBool("Whether etcd has its quorum, every member is healthy, all agree on leader " +
		"and members, every control plane has a member, and no alarm is raised: the conditions of `talosop_cluster_health` " +
		"whose names begin with `Etcd`.")
	attributes["reachable"] = tf.ComputedBool("Whether any member answered. It is `true` as well when members answer " +
		"that they know no leader, which is an etcd without a quorum: nobody lists the members then.")
	attributes["cause"] = tf.ComputedString("Why nobody lists the members, with the control planes that were asked; " +
		"null when somebody does.")
	attributes["quorum"] = tf.ComputedNumber("How many voting members have to work: more than half of them. Null when " +
		"nobody lists the members.")
	attributes["alarms"] = tf.ComputedStrings("Alarms that are raised, such as `NOSPACE on cp-1`, sorted. Empty, too, " +
		"when nobody answers.")
	attributes["members"] = tf.ComputedObjectList("The members, sorted by name. Empty when nobody lists them.",
		memberAttributes())

	return attributes
}

func memberAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"id": tf.ComputedString("Id of the member, hexadecimal, as `talosctl etcd members` prints it."),
		"name": tf.ComputedString("Name of the member, which is the host name of its machine. Null for one that was added " +
			"and never started."),
		"peer_urls": tf.ComputedStrings("URLs at which the other members reach it, such as `https://10.0.0.11:2380`."),
		"learner":   tf.ComputedBool("Whether it is a learner, which is catching up and does not vote yet."),
		"leader":    tf.ComputedBool("Whether a member says that it leads."),
		"healthy": tf.ComputedBool("Whether it votes, answers on its own machine, follows a leader, raised no alarm and " +
			"reports no error."),
		"errors": tf.ComputedStrings("Why it is not healthy, including what it reports itself; empty when it is. An alarm " +
			"is with the member that raised it."),
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
