#!/bin/sh
# Repairs workers without a person: plans, asks the policy in repair.rego, and applies the saved plan only if the policy says so.
#
#   CLI=terraform METRICS=/var/lib/node_exporter/textfile/repair.prom sh repair.sh
#
# It exits with 0 if there was nothing to do, or the repair succeeded; with 1 if a command failed; and with 3 if a person has to look.
set -eu
umask 077 # the plan contains secrets

cli=${CLI:-tofu}
work=$(mktemp -d)

finish() {
	status=$?
	rm -rf "$work"

	if [ -n "${METRICS:-}" ]; then
		printf 'talosop_repair_exit_code %d\ntalosop_repair_last_run_timestamp_seconds %d\n' "$status" "$(date +%s)" >"$METRICS.new"
		chmod 644 "$METRICS.new"
		mv "$METRICS.new" "$METRICS"
	fi
}
trap finish EXIT
trap 'exit 1' HUP INT TERM

ask() {
	opa eval --format raw --data repair.rego --input "$work/plan.json" "$1"
}

"$cli" init -input=false >"$work/init" || { cat "$work/init" && exit 1; }
"$cli" plan -input=false -var repair=true -out="$work/plan"
"$cli" show -json "$work/plan" >"$work/plan.json"

decision=$(ask data.repair.decision)
ask 'concat("\n", data.repair.report)'

case $decision in
apply)
	"$cli" apply -input=false "$work/plan"
	;;
nothing)
	echo "Nothing to repair."
	;;
stop)
	echo "Stopped: nothing was applied. A person has to look." >&2
	exit 3
	;;
*)
	echo "The policy did not decide: $decision" >&2
	exit 1
	;;
esac
