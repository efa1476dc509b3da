package spelling_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	kjson "sigs.k8s.io/json"

	"github.com/heliostat-dev/heliostat/apiserver/spelling"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

var errOther = errors.New("the disk is full")

func TestFindMisfit_NamesTheField(t *testing.T) {
	const noQuantity = `, which is no quantity; write one such as 4, 500m or 16Gi`
	head := func(container string) string {
		return `{"spec":{"head":{"template":{"spec":{"containers":[` + container + `]}}}}}`
	}
	for name, c := range map[string]struct{ text, want string }{
		"a limit":         {head(`{"name":"ray","resources":{"limits":{"cpu":"abc"}}}`), `spec.head.template.spec.containers[0].resources.limits.cpu is "abc"` + noQuantity},
		"the second one":  {head(`{"resources":{"limits":{"cpu":1}}},{"resources":{"requests":{"memory":"16GB"}}}`), `spec.head.template.spec.containers[1].resources.requests.memory is "16GB"` + noQuantity},
		"a volume":        {`{"spec":{"head":{"template":{"spec":{"volumes":[{"emptyDir":{"sizeLimit":"big"}}]}}}}}`, `spec.head.template.spec.volumes[0].emptyDir.sizeLimit is "big"` + noQuantity},
		"without end":     {head(`{"resources":{"limits":{"cpu":"` + strings.Repeat("a", 1000) + `"}}}`), `spec.head.template.spec.containers[0].resources.limits.cpu is "` + strings.Repeat("a", 80) + `"` + noQuantity},
		"a text":          {`{"spec":{"workerGroups":[{"replicas":"two"}]}}`, "spec.workerGroups.replicas is a text, and must be a whole number; write a whole number"},
		"a fraction":      {`{"spec":{"workerGroups":[{"replicas":1.5}]}}`, "spec.workerGroups.replicas is a number, and must be a whole number; write a whole number"},
		"a number":        {`{"spec":{"rayVersion":2.6}}`, "spec.rayVersion is a number, and must be a text; write it in quotes"},
		"true":            {`{"spec":{"rayVersion":true}}`, "spec.rayVersion is true or false, and must be a text; write it in quotes"},
		"an object":       {`{"spec":{"workerGroups":{"name":"a"}}}`, "spec.workerGroups is an object, and must be a list; write a list"},
		"a text for many": {`{"spec":{"head":"small"}}`, "spec.head is a text, and must be an object; write an object"},
		"a truth value":   {`{"spec":{"suspend":"yes"}}`, "spec.suspend is a text, and must be true or false; write true or false"},
	} {
		t.Run(name, func(t *testing.T) {
			object, fields := &v1beta1.ComputeCluster{}, map[string]any{}
			if err := json.Unmarshal([]byte(c.text), &fields); err != nil {
				t.Fatal(err)
			}
			_, err := kjson.UnmarshalStrict([]byte(c.text), object)
			if err == nil {
				t.Fatal("it can be read")
			}
			found := spelling.FindMisfit(object, fields, err)
			if found == nil {
				t.Fatalf("nothing is found of %v", err)
			}
			if got := found.Path + " " + found.Fact + "; " + found.Remedy; got != c.want {
				t.Errorf("it is %s, want %s", got, c.want)
			}
		})
	}
	if found := spelling.FindMisfit(&v1beta1.ComputeCluster{}, map[string]any{"spec": map[string]any{"none": "abc"}}, errOther); found != nil {
		t.Errorf("of another failure it is %+v", found)
	}
}
