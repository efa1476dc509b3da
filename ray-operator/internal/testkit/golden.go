package testkit

import (
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit/golden"
)

// Golden compares an object with testdata/<name>.yaml of the test's package, or writes
// that file where the test runs with -update.
func Golden(t *testing.T, name string, obj any) {
	t.Helper()
	have, err := yaml.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	golden.File(t, "testdata/"+name+".yaml", string(have))
}
