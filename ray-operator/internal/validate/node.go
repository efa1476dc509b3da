package validate

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
)

func size(path *field.Path, spec *v1alpha1.NodeSpec) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(spec.Size)) {
		quantity := spec.Size[name]
		switch device := name != corev1.ResourceCPU && name != corev1.ResourceMemory && strings.Contains(string(name), "/"); {
		case quantity.Sign() < 0, quantity.Sign() == 0 && !device:
			errs = append(errs, field.Invalid(path.Key(string(name)), quantity.String(), "must be greater than zero"))
		case device && !whole(quantity):
			errs = append(errs, field.Invalid(path.Key(string(name)), quantity.String(), "a device cannot be split; give a whole number"))
		}
	}
	if ray := rayContainer(spec.Template); ray != nil && len(spec.Size) > 0 && len(ray.Resources.Limits)+len(ray.Resources.Requests) > 0 {
		errs = append(errs, field.Forbidden(path, "the template's ray container has resources of its own; keep one of the two"))
	}
	return errs
}

func whole(quantity resource.Quantity) bool { return quantity.MilliValue()%1000 == 0 }

func rayResources(path *field.Path, resources map[string]resource.Quantity) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(resources)) {
		quantity := resources[name]
		switch {
		case quantity.Sign() < 0:
			errs = append(errs, field.Invalid(path.Key(name), quantity.String(), "must not be negative"))
		case (name == "CPU" || name == "GPU") && !whole(quantity):
			errs = append(errs, field.Invalid(path.Key(name), quantity.String(), "Ray counts these as whole numbers per node"))
		case name == "object_store_memory":
			errs = append(errs, field.Forbidden(path.Key(name), "follows the container's memory; change size or the template's limits"))
		case strings.HasPrefix(name, "node:"), name == "":
			errs = append(errs, field.Forbidden(path.Key(name), "is Ray's own; choose another name"))
		}
	}
	return errs
}

// ownedParams are the options of "ray start" that the operator sets, each with where
// to say the same.
var ownedParams = map[string]string{
	"head": "", "block": "", "address": "", "port": "", "dashboard-host": "", "dashboard-port": "",
	"dashboard-agent-listen-port": "", "metrics-export-port": "", "ray-client-server-port": "", "no-monitor": "",
	"node-ip-address": "", "redis-password": "", "redis-username": "", "autoscaling-config": "",
	"num-cpus": "use rayResources.CPU", "num-gpus": "use rayResources.GPU", "memory": "use rayResources.memory",
	"resources": "use rayResources", "labels": "use labels", "labels-file": "use labels",
	"object-store-memory": "it follows the container's memory; change size or the template's limits",
	"disable-usage-stats": "set RAY_USAGE_STATS_ENABLED in the template; it is off by default",
}

// bareParams are the options of "ray start" that take no value.
var bareParams = []string{"no-redirect-output", "enable-object-reconstruction", "ray-debugger-external", "enable-resource-isolation"}

var paramName = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

func startParams(path *field.Path, params map[string]string) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(params)) {
		remedy, owned := ownedParams[name]
		switch {
		case !paramName.MatchString(name):
			errs = append(errs, field.Invalid(path.Key(name), name, "give the option without leading dashes, in lower case"))
		case owned && remedy != "":
			errs = append(errs, field.Forbidden(path.Key(name), "the operator sets this option; "+remedy))
		case owned:
			errs = append(errs, field.Forbidden(path.Key(name), "the operator sets this option; leave it out"))
		case slices.Contains(bareParams, name) && params[name] != "":
			errs = append(errs, field.Invalid(path.Key(name), params[name], "this option takes no value; leave it empty"))
		}
	}
	return errs
}

// rayLabel is Ray's own rule for keys and values of node labels.
var rayLabel = regexp.MustCompile(`^([a-zA-Z0-9]([a-zA-Z0-9._-]{0,61}[a-zA-Z0-9])?)?$`)

func rayLabels(path *field.Path, labels map[string]string) field.ErrorList {
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		prefix, name, found := strings.Cut(key, "/")
		if !found {
			prefix, name = "", key
		}
		switch {
		case prefix == "ray.io":
			errs = append(errs, field.Forbidden(path.Key(key), "the prefix ray.io is Ray's own; choose another"))
		case name == "" || !rayLabel.MatchString(name) || strings.ContainsAny(prefix, ",= "):
			errs = append(errs, field.Invalid(path.Key(key), key,
				"a key is letters, digits, '-', '_' and '.', at most 63, with an optional prefix and '/'"))
		case !rayLabel.MatchString(labels[key]):
			errs = append(errs, field.Invalid(path.Key(key), labels[key], "a value is letters, digits, '-', '_' and '.', at most 63"))
		}
	}
	return errs
}
