#!/bin/sh
# Rehearses the change in a file of variables, such as change.tfvars with `planned = { kubernetes = "v1.37.0" }`. It leaves
# report.json, and a log of each step with its warnings and errors, and fails if a step did. The pods are removed in either
# case.
#
#   CLI=terraform sh rehearse.sh change.tfvars
set -eu

cli=${CLI:-tofu}
file=$1
failed='' seconds='' copy=null change=null

# Runs a step, says how long it took, and continues after a failure.
step() {
  name=$1
  began=$(date +%s)
  shift
  "$cli" "$@" -input=false -no-color -auto-approve >"$name.log" 2>&1 || failed="$failed${failed:+, }\"$name\""
  seconds="$seconds${seconds:+, }\"$name\": $(($(date +%s) - began))"
}

# The report of the copy as it is now. A failed apply has none, so a refresh reads it, which changes nothing.
report() {
  [ -z "$failed" ] || "$cli" apply -refresh-only -input=false -no-color -auto-approve "$@" >refresh.log 2>&1 || cat refresh.log >&2
  "$cli" output -json report 2>/dev/null || echo null
}

rm -f ./*.log report.json
"$cli" init -input=false -no-color

# What a run that was canceled left. Without a refresh, a destroy does not plan to undo the change first.
"$cli" destroy -refresh=false -input=false -no-color -auto-approve

step copy apply -var-file="$file"
copy=$(report -var-file="$file")

if [ -z "$failed" ]; then
  snapshot=$("$cli" output -raw snapshot)
  step change apply -var-file="$file" -var "snapshot=$snapshot" -var change=true
  change=$(report -var-file="$file" -var "snapshot=$snapshot" -var change=true)
fi

step remove destroy -refresh=false
cat copy.log change.log remove.log 2>/dev/null || true
echo "{\"failed\": [$failed], \"seconds\": {$seconds}, \"copy\": $copy, \"change\": $change}" | tee report.json
[ -z "$failed" ]
