package bundle

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// secretsOf returns the names of the Secrets that objects name anywhere in them, with those of the tokens of the clusters that
// they are or name. An object that names a Secret may have let a program read it that is gone by now.
func secretsOf(objects []any) []string {
	names := map[string]bool{}
	for _, object := range objects {
		if cluster, is := object.(map[string]any); is && cluster["kind"] == "ComputeCluster" {
			names[naming.TokenSecret((&unstructured.Unstructured{Object: cluster}).GetName())] = true
		}
		walk(object, func(key string, value any) {
			for _, name := range namedBy(key, value) {
				names[name] = true
			}
		})
	}
	return slices.Sorted(maps.Keys(names))
}

// namedBy returns the names of the Secrets that one field names, by how Kubernetes and our kinds call such fields.
func namedBy(key string, value any) []string {
	isSecret := strings.Contains(strings.ToLower(key), "secret")
	switch value := value.(type) {
	case string:
		switch {
		case key == "clusterName":
			return []string{naming.TokenSecret(value)}
		case isSecret && strings.HasSuffix(key, "Name"):
			return []string{value}
		}
	case map[string]any:
		name, isNamed := value["name"].(string)
		switch {
		case key == "clusterRef" && isNamed:
			return []string{naming.TokenSecret(name)}
		case isSecret && isNamed:
			return []string{name}
		}
	case []any:
		var names []string
		for _, one := range value {
			if isSecret {
				names = append(names, namedBy(key, one)...)
			}
		}
		return names
	}
	return nil
}
