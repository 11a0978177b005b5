#!/bin/sh
# Rehearses the change in a file of variables, such as change.tfvars with `planned = { kubernetes = "v1.37.0" }`. It leaves
# report.json, and change.log with the warnings and errors, and fails if the change did. The pods are removed in either case.
#
#   CLI=terraform sh rehearse.sh change.tfvars
set -eu

cli=${CLI:-tofu}
failed=0

# Runs a step, says how long it took, and continues after a failure.
step() {
  name=$1
  began=$(date +%s)
  shift
  "$@" >"$name.log" 2>&1 || failed=1
  echo "$name: $(($(date +%s) - began)) seconds" | tee -a durations.txt
}

rm -f durations.txt report.json
"$cli" init -input=false -no-color

# What a run that was canceled left. Without a refresh, a destroy does not plan to undo the change first.
"$cli" destroy -refresh=false -input=false -no-color -auto-approve

step copy "$cli" apply -input=false -no-color -auto-approve

if [ "$failed" = 0 ]; then
  step change "$cli" apply -input=false -no-color -auto-approve -var-file="$1" -var "snapshot=$("$cli" output -raw snapshot)"
  "$cli" output -json report >report.json
fi

step remove "$cli" destroy -refresh=false -input=false -no-color -auto-approve

cat ./*.log
exit "$failed"
