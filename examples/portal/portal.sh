#!/usr/bin/env bash
# A cluster's day with curl: who am I, create, look, scale, suspend, delete.
# usage: SERVER=https://HOST TOKEN=… CA=ca.crt NAMESPACE=team-a portal.sh
set -euo pipefail
ask() { # ask METHOD PATH [BODY]
  echo "$1 $2" >&2
  curl --silent --show-error --fail-with-body --cacert "$CA" -H "Authorization: Bearer $TOKEN" \
    -H "Content-Type: application/json" -X "$1" "$SERVER$2" ${3:+--data "$3"}
  echo
}
here=/v1/namespaces/$NAMESPACE
ask GET /v1/me
ask POST "$here/objects" '{"object": {"apiVersion": "heliostat.dev/v1beta1", "kind": "ComputeCluster",
  "metadata": {"name": "curl"}, "spec": {"rayVersion": "2.60.0",
  "head": {"size": {"cpu": "300m", "memory": "2Gi"}},
  "workerGroups": [{"name": "cpu", "replicas": 0, "size": {"cpu": "300m", "memory": "2Gi"}}]}}}'
ask GET /v1/namespaces # those that hold objects of Heliostat
ask GET "$here/clusters/curl"
ask POST "$here/clusters/curl:scale" '{"replicas": 1}'
ask POST "$here/clusters/curl:suspend"
ask GET "/v1/objects?namespaces=$NAMESPACE&kinds=clusters&sort=-since&limit=10"
ask DELETE "/apis/heliostat.dev/v1beta1/namespaces/$NAMESPACE/computeclusters/curl"
