package testkit

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// TestCheckStatus refuses what the API server refuses of a status.
func TestCheckStatus(t *testing.T) {
	retiring := make([]string, 257)
	for i := range retiring {
		retiring[i] = strings.Repeat("c", i)
	}
	for name, test := range map[string]struct {
		of   client.Object
		says string
	}{
		"nothing": {&v1beta1.ComputeCluster{}, ""},
		"all well": {&v1beta1.ComputeCluster{Status: v1beta1.ComputeClusterStatus{
			Epoch: 1, ControlStore: &v1beta1.ControlStoreStatus{Session: 1}, Groups: []v1beta1.GroupStatus{{Name: "a"}, {Name: "b"}},
		}}, ""},
		"a number below its bound": {&v1beta1.ComputeCluster{Status: v1beta1.ComputeClusterStatus{Epoch: -1}}, "status.epoch is -1"},
		"a required field": {
			&v1beta1.ComputeCluster{Status: v1beta1.ComputeClusterStatus{ControlStore: &v1beta1.ControlStoreStatus{}}},
			"status.controlStore.session is missing",
		},
		"a group twice": {
			&v1beta1.ComputeCluster{Status: v1beta1.ComputeClusterStatus{Groups: []v1beta1.GroupStatus{{Name: "a"}, {Name: "a"}}}},
			"status.groups[1] is there twice",
		},
		"a long text": {
			&v1beta1.ClusterJob{Status: v1beta1.ClusterJobStatus{Attempts: []v1beta1.JobAttempt{{Number: 1, Session: strings.Repeat("s", 254)}}}},
			"status.attempts[0].session has 254 characters",
		},
		"an unknown word": {
			&v1beta1.ClusterService{Status: v1beta1.ClusterServiceStatus{LastUpgrade: &v1beta1.UpgradeOutcome{Result: "Won"}}},
			`status.lastUpgrade.result is "Won"`,
		},
		"many items": {&v1beta1.ClusterService{Status: v1beta1.ClusterServiceStatus{Retiring: retiring}}, "status.retiring has 257 items"},
	} {
		t.Run(name, func(t *testing.T) {
			switch err := checkStatus(test.of); {
			case (err == nil) != (test.says == ""):
				t.Errorf("the answer is %v, want %q", err, test.says)
			case err != nil && !strings.Contains(err.Error(), test.says):
				t.Errorf("the answer is %v, want %q", err, test.says)
			}
		})
	}
}
