#!/usr/bin/env bash
# The main job in one command: a real local Kubernetes, the operator installed by its chart, a ComputeCluster, a ClusterJob
# that runs a Ray program on it, and a ClusterService that answers. usage: demo.sh [up|down] [KUBECONFIG]. It can be run again
# at any time; what is there is used. With a kubeconfig it uses that Kubernetes instead, and IMAGE names the operator's image
# there; for kind, minikube and Docker Desktop it builds one with Docker.
set -euo pipefail
cd "$(dirname "$0")/../.."
NAME=heliostat NODES=2 LOGS=.state/logs/demo GIVEN=${2:-}
mkdir -p bin "$LOGS"
START=$SECONDS

say() { printf '\n[%3ds] %s\n' $((SECONDS - START)) "$*"; }

# step TITLE COMMAND...: runs a command quietly, and says how long it took or where it failed.
step() {
  local title=$1 log began=$SECONDS
  shift
  log="$LOGS/$(tr -cs 'a-z0-9\n' - <<<"${title,,}").log"
  printf '[%3ds] %s ... ' $((SECONDS - START)) "$title"
  if "$@" >"$log" 2>&1; then
    printf 'ok (%ds)\n' $((SECONDS - began))
  else
    printf 'FAILED\n' >&2
    tail -n 20 "$log" >&2
    printf '\nThe whole log: %s\nRun "make demo" again after mending it; what was done so far is kept.\n' "$log" >&2
    exit 1
  fi
}

tool() { step "build $1" make "bin/$1"; }

fail() { echo "$*" >&2; exit 1; }

kubectl() { "$KUBECTL" "$@"; }

# is_desk CONTEXT: whether it is a Kubernetes that takes images from Docker on this machine.
is_desk() { [[ $1 == kind-* || $1 == minikube || $1 == docker-desktop ]]; }

# offer: says how to use a Kubernetes that is there already.
offer() {
  local context
  context=$(command kubectl config current-context 2>/dev/null) && is_desk "$context" || return 0
  echo "To use your $context instead: make demo KUBECONFIG=${KUBECONFIG:-$HOME/.kube/config}"
}

# find_given: the Kubernetes of the kubeconfig, with kubectl and helm.
find_given() {
  [ -r "$GIVEN" ] || fail "KUBECONFIG=$GIVEN cannot be read: give the path of a kubeconfig"
  export KUBECONFIG=$GIVEN
  KUBECTL=$(type -P kubectl) || fail "there is no kubectl in the PATH: install it"
  HELM=$(type -P helm) || { tool helm; HELM=bin/helm; }
  CONTEXT=$(kubectl config current-context)
  say "The Kubernetes of $CONTEXT"
}

# use_given: hands the operator's image to the nodes of that Kubernetes, unless IMAGE names one that they can pull.
use_given() {
  find_given
  if [ -z "${IMAGE:-}" ]; then
    is_desk "$CONTEXT" || fail "Where do its nodes find the operator's image? Build and push it (docs/getting-started.md), and run" \
      "make demo KUBECONFIG=$GIVEN IMAGE=REGISTRY/heliostat/operator:TAG"
    IMAGE=heliostat/operator:dev
    step "build the operator's image with Docker" docker build -f images/operator/Dockerfile -t $IMAGE .
    case $CONTEXT in
      kind-*) step "load the operator's image" kind load docker-image $IMAGE --name "${CONTEXT#kind-}" ;;
      minikube) step "load the operator's image" minikube image load $IMAGE ;;
    esac
  fi
  tool heliostat
  CHART=(--set-string "image.repository=${IMAGE%:*}" --set-string "image.tag=${IMAGE##*:}" --set-string "podAnnotations.image=$IMAGE at $(date +%s)")
}

# make_local: brings up a Kubernetes on this machine, with the images that the demo needs.
make_local() {
  local missing
  [ "$(id -u)" = 0 ] || fail "make demo makes network namespaces, mounts and containers, so it needs root: sudo make demo"
  offer
  say "Programs (the first time: about 10 minutes on 2 cores, most of it linking Kubernetes)"
  tool localkube
  tool images
  missing=$( (bin/localkube deps; bin/images deps) | sort -u | paste -sd' ')
  [ -z "$missing" ] || step "install the Debian packages $missing" sh -c 'bin/localkube deps --install && bin/images deps --install'
  bin/images build ray >"$LOGS/ray.tar" 2>"$LOGS/image-ray.log" & RAY=$!
  step "link Kubernetes, etcd and kubectl into one binary" bin/localkube build
  step "build helm" make bin/helm
  tool heliostat
  step "build the operator's image" sh -c "bin/images build operator >$LOGS/operator.tar"
  step "build Ray's image from PyPI" sh -c "tail -f --pid=$RAY $LOGS/image-ray.log; test -s $LOGS/ray.tar"

  say "Kubernetes"
  step "start a control plane and $NODES nodes" bin/localkube up --name $NAME --nodes $NODES \
    --image "$(cat "$LOGS/operator.tar")" --image "$(cat "$LOGS/ray.tar")"
  KUBECONFIG=$(bin/localkube kubeconfig --name $NAME)
  KUBECTL=$(bin/localkube status --name $NAME | awk '$1 == "kubectl" { print $2 }')
  export KUBECONFIG
  step "load the operator's image" bin/localkube load --name $NAME "$(cat "$LOGS/operator.tar")"
  HELM=bin/helm
  CHART=(--set-string "podAnnotations.image=$(basename "$(cat "$LOGS/operator.tar")" .tar)") # a new image under the old tag restarts it
}

# take_down: removes what the demo made.
take_down() {
  if [ -z "$GIVEN" ]; then
    [ -x bin/localkube ] || tool localkube
    step "take the local Kubernetes down" bin/localkube down --name $NAME
    return
  fi
  find_given
  step "delete the service" kubectl delete -k examples/serve/echo --ignore-not-found --timeout=5m
  step "delete the job" kubectl delete clusterjob sum --ignore-not-found --timeout=5m
  step "delete the cluster" kubectl delete computecluster demo --ignore-not-found --timeout=5m
  step "uninstall the operator" "$HELM" uninstall heliostat --namespace heliostat-system --ignore-not-found
  echo "The CRDs and the namespace heliostat-system stay: docs/installation.md says how to remove them."
}

if [ "${1:-up}" = down ]; then
  take_down
  exit 0
fi
if [ -n "$GIVEN" ]; then use_given; else make_local; fi
step "install the operator with helm" "$HELM" upgrade --install heliostat helm-chart/heliostat \
  --namespace heliostat-system --create-namespace --wait --timeout 3m --set replicas=1 "${CHART[@]}"

say "A ComputeCluster"
cat hack/demo/cluster.yaml
step "apply it" kubectl apply -f hack/demo/cluster.yaml
step "wait until it is Ready" kubectl wait --for=condition=Ready computecluster/demo --timeout=15m

# job: the manifest with the program in it.
job() { cat hack/demo/job.yaml; sed 's/^/    /' hack/demo/program.py; }

say "A ClusterJob on it"
cat hack/demo/job.yaml
echo "    (hack/demo/program.py)"
step "take a former one away" kubectl delete clusterjob sum --ignore-not-found --timeout=3m
job >"$LOGS/job.yaml"
step "apply it" kubectl apply -f "$LOGS/job.yaml"
step "wait until it is over" kubectl wait --for=jsonpath='{.status.endTime}' clusterjob/sum --timeout=5m
kubectl get clusterjob sum
kubectl get clusterjob sum -o 'jsonpath={range .status.attempts[0].lastLines[*]}  {@}{"\n"}{end}'
[ "$(kubectl get clusterjob sum -o 'jsonpath={.status.phase}')" = Succeeded ] ||
  { echo "the program did not succeed:" >&2; kubectl describe clusterjob sum >&2; exit 1; }

say "A ClusterService, on a cluster of its own (examples/serve/echo)"
step "apply it" kubectl apply -k examples/serve/echo
step "wait until it is Ready" kubectl wait --for=condition=Ready clusterservice/echo --timeout=15m
bin/heliostat service call echo '/?said=hello'

say "What there is now"
kubectl get nodes -o wide
echo
kubectl get pods -o wide
echo
kubectl get computeclusters -o wide
echo
kubectl get clusterjobs -o wide
echo
kubectl get clusterservices -o wide
cat <<END

[$((SECONDS - START))s] Done.

  export KUBECONFIG=$KUBECONFIG
  export PATH=$PWD/bin:$(dirname "$KUBECTL"):\$PATH

  What there is, and why it waits:  heliostat top
  The dashboard, signed in:         heliostat open demo
  its address on this machine:      kubectl port-forward service/demo-head 8265 and http://127.0.0.1:8265
  and its token:                    kubectl get secret demo-token -o jsonpath='{.data.auth_token}' | base64 -d
  A job of your own on it:          heliostat job submit --cluster demo -- python -c 'import ray; ray.init(); print(ray.cluster_resources())'
  Call the service:                 heliostat service call echo '/?said=hello'
  Scale the cluster:                heliostat scale demo 3
  How the job went:                 kubectl describe clusterjob sum
  Your own:                         kubectl apply -f FILE      (samples: ray-operator/config/samples)
                                    kubectl apply -k DIRECTORY (examples)
  Take it all down:                 make demo-down${GIVEN:+ KUBECONFIG=$GIVEN}
END
