# Make a replica on another node the primary, as `kubectl cnpg promote` does.
pods() { kubectl get pods -l "cnpg.io/cluster=$CLUSTER,cnpg.io/instanceRole=$1" --field-selector "$2" -o name | head -n 1; }

[ -n "$(pods primary "spec.nodeName=$NODE")" ] || exit 0

replica=$(pods replica "spec.nodeName!=$NODE,status.phase=Running")
replica=${replica#pod/}
[ -n "$replica" ]

kubectl patch clusters.postgresql.cnpg.io "$CLUSTER" --subresource status --type merge -p "{\"status\": {
  \"targetPrimary\": \"$replica\", \"targetPrimaryTimestamp\": \"$(date -u +%Y-%m-%dT%H:%M:%S.000000Z)\",
  \"phase\": \"Switchover in progress\", \"phaseReason\": \"Switching over to $replica\"}}"
kubectl wait "clusters.postgresql.cnpg.io/$CLUSTER" --timeout 5m --for "jsonpath={.status.currentPrimary}=$replica"
