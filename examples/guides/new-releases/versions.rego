# Denies plans whose checks of versions did not pass. A check also fails if the list of releases could not be read. For
# conftest:
#
#   terraform plan -out=plan && terraform show -json plan > plan.json
#   conftest test --policy . plan.json
package main

import rego.v1

deny contains sprintf("check %s: %s", [check.address.name, check.status]) if {
	some check in input.checks
	check.address.kind == "check"
	check.address.name in {"talos_is_recent", "kubernetes_is_recent"}
	check.status != "pass"
}
