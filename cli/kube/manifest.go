package kube

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/heliostat-dev/heliostat/apiserver/spelling"
)

// ReadManifest reads an object from YAML or JSON. The error names each field that the object does not have, with the nearest
// one that it has, or the quantity that is none.
func ReadManifest(text []byte, object any) error {
	plain, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return err
	}
	unknown, err := kjson.UnmarshalStrict(plain, object)
	if err != nil {
		return cmp.Or(badQuantity(plain), err)
	}
	all := make([]error, 0, len(unknown))
	for _, one := range unknown {
		if path, is := spelling.UnknownField(one); is {
			one = fmt.Errorf("%s is no field; %s", path, spelling.FieldRemedy(object, path))
		}
		all = append(all, one)
	}
	return errors.Join(all...)
}

// badQuantity names the first quantity of a manifest that is none, by where limits and requests are.
func badQuantity(manifest []byte) error {
	var fields any
	if err := json.Unmarshal(manifest, &fields); err != nil {
		return err
	}
	path, value := findBad("", fields, false)
	if path == "" {
		return nil
	}
	return fmt.Errorf("%s: %q is no quantity; write one such as 4, 500m or 16Gi", path, value)
}

// findBad returns the path and value of the first text that is no quantity and should be one.
func findBad(path string, fields any, isQuantity bool) (string, string) {
	switch fields := fields.(type) {
	case string:
		if _, err := resource.ParseQuantity(fields); isQuantity && err != nil {
			return path, fields
		}
	case []any:
		for i, one := range fields {
			if path, value := findBad(fmt.Sprintf("%s[%d]", path, i), one, false); path != "" {
				return path, value
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			isIn := isQuantity || slices.Contains([]string{"limits", "requests", "size"}, name)
			if path, value := findBad(join(path, name), fields[name], isIn); path != "" {
				return path, value
			}
		}
	}
	return "", ""
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
