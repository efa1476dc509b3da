package validate

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// Texts that more than one rule needs.
const (
	prefixOurs   = "heliostat.dev/"
	chooseOther  = "choose another"
	labelGrammar = "labels and selectors must follow Kubernetes' grammar: letters, digits, '-', '_' and '.', at most 63, and for keys an optional DNS prefix and '/'"
)

// ownLabels are labels beside those of our prefix that every object of a cluster gets.
var ownLabels = []string{"app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/managed-by"}

// isOwnLabel reports whether a label is the operator's to set.
func isOwnLabel(key string) bool { return isOwnKey(key) || slices.Contains(ownLabels, key) }

// isOwnKey reports whether a key of labels or annotations is of our domain, or of one below it. By labels of these, requests
// are led.
func isOwnKey(key string) bool {
	return strings.HasPrefix(key, prefixOurs) || strings.Contains(key, "."+prefixOurs)
}

func isObjectName(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }

func isLabelKey(key string) bool { return len(validation.IsQualifiedName(key)) == 0 }

// badLabels tells a key of labels that breaks Kubernetes' grammar by itself or by its value.
func badLabels(labels map[string]string) func(key string) bool {
	return func(key string) bool { return !isLabelKey(key) || len(validation.IsValidLabelValue(labels[key])) > 0 }
}

// badAnnotation tells a key of annotations that breaks Kubernetes' grammar.
func badAnnotation(key string) bool { return !isLabelKey(strings.ToLower(key)) }

// ownVariables are the variables by which the parts of a cluster find and trust each other.
var ownVariables = []string{
	"RAY_ADDRESS", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "RAY_CLOUD_INSTANCE_ID", "RAY_CLUSTER_NAME",
	"RAY_CLUSTER_NAMESPACE", "RAY_ENABLE_GCS_LEADER_ELECTION", "RAY_ENABLE_K8S_TOKEN_AUTH", "RAY_NODE_TYPE_NAME",
	"RAY_USE_TLS", "RAY_TLS_SERVER_CERT", "RAY_TLS_SERVER_KEY", "RAY_TLS_CA_CERT",
}

// storeVariables are the variables that say where the head keeps its memory. Without a
// control store they would give it one that nobody manages.
var storeVariables = []string{
	"RAY_REDIS_ADDRESS", "RAY_external_storage_namespace", "RAY_gcs_storage", "RAY_gcs_storage_path",
	"RAY_REDIS_CA_CERT", "RAY_REDIS_CA_PATH", "RAY_REDIS_CLIENT_CERT", "RAY_REDIS_CLIENT_KEY", "RAY_REDIS_SERVER_NAME",
}

// ownVolumes are the names of the operator's volumes.
var ownVolumes = []string{naming.VolumeShared, naming.VolumeToken, naming.VolumeAuthority, naming.VolumeCertificates, naming.VolumeSession, naming.VolumeHistory}

// OwnVolumes returns the names of volumes that the operator adds to pods.
func OwnVolumes() []string { return slices.Clone(ownVolumes) }

// list writes words as a list of an expression.
func list(words []string) string { return "['" + strings.Join(words, "', '") + "']" }

// ownLabel, ownAnnotation, goodLabels and goodAnnotations are expressions over a map that
// stands for %s, the counterparts of the functions above.
var (
	isNotOwn        = "!k.startsWith('" + prefixOurs + "') && !k.contains('." + prefixOurs + "')"
	noOwnLabel      = "(%s).all(k, " + isNotOwn + " && !(k in " + list(ownLabels) + "))"
	noOwnAnnotation = "(%s).all(k, " + isNotOwn + ")"
	goodLabels      = "(%[1]s).all(k, !format.qualifiedName().validate(k).hasValue() && !format.labelValue().validate((%[1]s)[k]).hasValue())"
	goodAnnotations = "(%s).all(k, !format.qualifiedName().validate(k.lowerAscii()).hasValue())"
)
