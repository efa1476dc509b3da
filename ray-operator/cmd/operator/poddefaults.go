package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/validate"
	"github.com/heliostat-dev/heliostat/ray-operator/yaml"
)

// readPodDefaults reads what lies under the podDefaults of every cluster, by the rules of that field. It returns nil where
// the text says nothing.
func readPodDefaults(text string) (*v1beta1.PodDefaults, error) {
	if text == "" {
		return nil, nil
	}
	var given v1beta1.PodDefaults
	if err := yaml.Unmarshal([]byte(text), yaml.Settings, &given); err != nil {
		return nil, fmt.Errorf("read --pod-defaults: %w: write fields of spec.podDefaults as JSON", err)
	}
	if equality.Semantic.DeepEqual(given, v1beta1.PodDefaults{}) {
		return nil, nil
	}
	probe := v1beta1.ComputeCluster{Spec: v1beta1.ComputeClusterSpec{
		RayVersion: "2.60.0", Autoscaling: &v1beta1.Autoscaling{}, PodDefaults: &given, // whose rules about variables are the strictest
	}}
	probe.Name = "all"
	if err := validate.Cluster(&probe).ErrorList().ToAggregate(); err != nil {
		return nil, fmt.Errorf("read --pod-defaults: %w", err)
	}
	return &given, nil
}

// readSizes reads the sizes of the operator's containers, by the rules of the fields that they lie under.
func readSizes(text string) (pod.Sizes, error) {
	var given pod.Sizes
	if text == "" {
		return given, nil
	}
	if err := yaml.Unmarshal([]byte(text), yaml.Settings, &given); err != nil {
		return given, fmt.Errorf("read --sizes: %w: write the sizes as JSON with the keys autoscaling, encryption and managedRedis", err)
	}
	probe := v1beta1.ComputeCluster{Spec: v1beta1.ComputeClusterSpec{
		RayVersion: "2.60.0", Autoscaling: &v1beta1.Autoscaling{Size: given.Autoscaling},
		Network:      &v1beta1.Network{Encryption: v1beta1.Enabled, EncryptionSize: given.Encryption},
		ControlStore: &v1beta1.ControlStore{ManagedRedis: &v1beta1.ManagedRedis{Size: given.ManagedRedis}},
	}}
	probe.Name = "all"
	if err := validate.Cluster(&probe).ErrorList().ToAggregate(); err != nil {
		return pod.Sizes{}, fmt.Errorf("read --sizes: %w", err)
	}
	return given, nil
}
