#!/bin/sh
# Runs the drill and leaves report.json. It fails if the drill did, and removes the pods in either case.
#
#   CLI=terraform sh drill.sh
set -eu

cli=${CLI:-tofu}

"$cli" init -input=false

# What a run that was canceled left. Without a refresh, the destroy does not plan to restore a newer snapshot first.
"$cli" destroy -refresh=false -input=false -auto-approve

passed=0
"$cli" apply -input=false -auto-approve || passed=$?
"$cli" output -json report >report.json || passed=1
"$cli" destroy -refresh=false -input=false -auto-approve

exit "$passed"
