package rest

import (
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// TestCheckProcess: only a process of a gang that runs once has a log of its own by its name.
func TestCheckProcess(t *testing.T) {
	gang := &v1beta1.Gang{Roles: []v1beta1.GangRole{{Name: "worker", Replicas: 2}}}
	for name, c := range map[string]struct {
		spec v1beta1.ClusterJobSpec
		want string
	}{
		"a process of the gang": {v1beta1.ClusterJobSpec{Gang: gang}, ""},
		"no gang":               {v1beta1.ClusterJobSpec{}, "is not a gang"},
		"trials of a gang":      {v1beta1.ClusterJobSpec{Gang: gang, Tune: &v1beta1.Tune{}}, "has trials, whose lines are in its output"},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkProcess(&v1beta1.ClusterJob{Spec: c.spec}, "worker", 1)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("have %v, want %q", err, c.want)
			}
		})
	}
}
