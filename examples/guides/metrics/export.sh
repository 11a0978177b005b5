#!/bin/sh
# Observes the cluster and writes its metrics for the textfile collector. Run it from a timer, such as every 5 minutes.
set -eu

collector=${TF_VAR_collector:?Set TF_VAR_collector to the folder of the textfile collector.}

terraform apply -refresh-only -auto-approve -input=false > /dev/null
terraform output -raw metrics > "$collector/.prod-health.prom.new"
mv "$collector/.prod-health.prom.new" "$collector/prod-health.prom"
