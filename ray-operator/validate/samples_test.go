package validate_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/validate"
)

// TestSamplesAreGood: the rules find nothing wrong with what people copy.
func TestSamplesAreGood(t *testing.T) {
	files, err := filepath.Glob("../config/samples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("find the samples: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(string(text), "---\n") {
			if errs := wrongWith(t, document); len(errs) > 0 {
				t.Errorf("%s: %v", file, errs)
			}
		}
	}
}

// wrongWith is what the rules say of a manifest, if it is of a kind of ours.
func wrongWith(t *testing.T, manifest string) validate.Findings {
	t.Helper()
	strictly := func(object any) {
		if err := yaml.UnmarshalStrict([]byte(manifest), object); err != nil {
			t.Fatal(err)
		}
	}
	switch {
	case strings.Contains(manifest, "kind: ComputeCluster\n"):
		var cluster v1beta1.ComputeCluster
		strictly(&cluster)
		return judge(t, "ComputeCluster", &cluster)
	case strings.Contains(manifest, "kind: ClusterJob\n"):
		var job v1beta1.ClusterJob
		strictly(&job)
		return judge(t, "ClusterJob", &job)
	case strings.Contains(manifest, "kind: ClusterService\n"):
		var service v1beta1.ClusterService
		strictly(&service)
		return judge(t, "ClusterService", &service)
	case strings.Contains(manifest, "kind: ClusterJobSchedule\n"):
		var schedule v1beta1.ClusterJobSchedule
		strictly(&schedule)
		return judge(t, "ClusterJobSchedule", &schedule)
	default:
		return nil
	}
}
