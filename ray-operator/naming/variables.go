package naming

import (
	"slices"
)

// HeadGroup is the name that Ray is given as the head's node type.
const HeadGroup = "headgroup"

// ownedVariables are the variables by which the parts of a cluster find and trust each
// other; a template that sets one is refused.
var ownedVariables = []string{
	"RAY_ADDRESS", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "RAY_CLOUD_INSTANCE_ID", "RAY_CLUSTER_NAME",
	"RAY_CLUSTER_NAMESPACE", "RAY_ENABLE_GCS_LEADER_ELECTION", "RAY_ENABLE_K8S_TOKEN_AUTH", "RAY_NODE_TYPE_NAME",
	"RAY_USE_TLS", "RAY_TLS_SERVER_CERT", "RAY_TLS_SERVER_KEY", "RAY_TLS_CA_CERT",
	// Where the head keeps its memory: what the spec's controlStore says, or nowhere.
	"RAY_REDIS_ADDRESS", "RAY_external_storage_namespace", "RAY_gcs_storage", "RAY_gcs_storage_path",
	"RAY_REDIS_CA_CERT", "RAY_REDIS_CA_PATH", "RAY_REDIS_CLIENT_CERT", "RAY_REDIS_CLIENT_KEY", "RAY_REDIS_SERVER_NAME",
}

// OwnsVariable reports whether an environment variable of the Ray container is the
// operator's alone.
func OwnsVariable(name string) bool { return slices.Contains(ownedVariables, name) }

// VariableAutoscaler is the variable by which Ray's head knows that what waits is told in
// the way that the autoscaler reads.
const VariableAutoscaler = "RAY_enable_autoscaler_v2"

// VariablePodUID is the variable that tells the autoscaler which head it is beside.
const VariablePodUID = "POD_UID"
