package kube

import (
	"encoding/json"
	"errors"
	"fmt"

	kjson "sigs.k8s.io/json"

	"github.com/heliostat-dev/heliostat/apiserver/spelling"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/convert/document"
)

// LargestManifest is how many bytes an API server takes.
const LargestManifest = 3 << 20

// ReadManifest reads the only object of a text of YAML or JSON, which is of a kind of ours. The error names each field that the
// kind does not have, with the nearest one that it has, or the value that does not fit its field.
func ReadManifest(text []byte, kind Kind, object any) error {
	all := document.Read(text, LargestManifest)
	if len(all) != 1 {
		return fmt.Errorf("there are %d objects; give one %s", len(all), kind.Name)
	}
	one := all[0]
	if one.Problem != nil {
		return one.Problem
	}
	if found := one.Object.GroupVersionKind(); found != v1beta1.GroupVersion.WithKind(kind.Name) {
		return fmt.Errorf("it is a %s of %s; give one %s of %s", found.Kind, found.GroupVersion(), kind.Name, v1beta1.GroupVersion)
	}
	plain, err := json.Marshal(one.Object.Object)
	if err != nil {
		return fmt.Errorf("write it as JSON: %w", err)
	}
	unknown, err := kjson.UnmarshalStrict(plain, object)
	if err != nil {
		if found := spelling.FindMisfit(object, one.Object.Object, err); found != nil {
			return fmt.Errorf("%s %s; %s", found.Path, found.Fact, found.Remedy)
		}
		return err
	}
	wrong := make([]error, 0, len(unknown))
	for _, one := range unknown {
		if path, is := spelling.UnknownField(one); is {
			one = fmt.Errorf("%s is no field; %s", path, spelling.FieldRemedy(object, path))
		}
		wrong = append(wrong, one)
	}
	return errors.Join(wrong...)
}
