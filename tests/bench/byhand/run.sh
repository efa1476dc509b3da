#!/usr/bin/env bash
# Starts the Ray cluster of manifests.yaml by hand on the Kubernetes of your kubeconfig, and says after how long its pods
# were ready. Remove it with: kubectl delete namespace byhand
set -euo pipefail
cd "$(dirname "$0")"
KUBECTL=${KUBECTL:-kubectl}
"$KUBECTL" create namespace byhand
"$KUBECTL" --namespace byhand wait --for=create serviceaccount/default --timeout=30s
start=$(date +%s%N)
"$KUBECTL" apply -f manifests.yaml
"$KUBECTL" --namespace byhand wait --for=condition=Ready pod --all --timeout=5m
echo "ready $((($(date +%s%N) - start) / 1000000)) ms after apply"
