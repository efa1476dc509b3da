package cluster

import (
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/ray-operator/crdcheck"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// TestBuild_MakesValidClusters has what flags become, and what is refused.
func TestBuild_MakesValidClusters(t *testing.T) {
	for name, c := range map[string]struct {
		shape      Shape
		hasWorkers bool
		says       string // "" is refused
	}{
		"nothing but a name":       {Shape{workers: 1}, false, "Ray 2.60.0, 1 workers"},
		"no worker":                {Shape{}, true, "Ray 2.60.0, 0 workers"},
		"all flags":                {Shape{workers: 2, cpu: "500m", memory: "16Gi", gpu: "1", image: "a/b:c", idle: time.Hour}, true, "Ray 2.60.0, 2 workers"},
		"a range":                  {Shape{autoscale: "0:8"}, false, "Ray 2.60.0, 0 to 8 workers"},
		"a GPU of another vendor":  {Shape{workers: 1, gpu: "amd.com/gpu=2"}, false, "Ray 2.60.0, 1 workers"},
		"fewer than none":          {Shape{workers: -1}, true, ""},
		"a number and a range":     {Shape{workers: 1, autoscale: "0:8"}, true, ""},
		"a range from above":       {Shape{autoscale: "8:0"}, false, ""},
		"half a range":             {Shape{autoscale: "8"}, false, ""},
		"a range below zero":       {Shape{autoscale: "-1:2"}, false, ""},
		"no amount":                {Shape{memory: "much"}, false, ""},
		"none of it":               {Shape{cpu: "0"}, false, ""},
		"idle for a moment":        {Shape{idle: time.Second}, false, ""},
		"idle for a negative time": {Shape{idle: -time.Hour}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.shape.ray = naming.NewestRay
			made, err := c.shape.Build("a", "dev", c.hasWorkers)
			switch {
			case c.says == "":
				if outcome.Code(err) != outcome.Usage {
					t.Errorf("it is not refused: %v", err)
				}
			case err != nil:
				t.Fatal(err)
			case describe(made) != c.says:
				t.Errorf("it is %q, want %q", describe(made), c.says)
			default:
				if answer, err := crdcheck.Create("ComputeCluster", made); err != nil || len(answer.Findings) > 0 {
					t.Errorf("the API server would refuse it: %v, %v", answer.Findings, err)
				}
			}
		})
	}
	made, err := (&Shape{workers: 1, gpu: "amd.com/gpu=2", ray: naming.NewestRay}).Build("a", "dev", false)
	if err != nil {
		t.Fatal(err)
	}
	if gpus := made.Spec.WorkerGroups[0].Size["amd.com/gpu"]; gpus.Value() != 2 {
		t.Errorf("a worker has %v", made.Spec.WorkerGroups[0].Size)
	}
}
