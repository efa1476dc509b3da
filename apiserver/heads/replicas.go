package heads

import (
	"context"
	"maps"
	"slices"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// Replica is a process of a deployment of a service.
type Replica struct {
	Cluster, Application, Deployment string
	// ID is Serve's, unique on its cluster, and State is in Serve's words.
	ID, State string
	// Log is empty while the replica has no place.
	Log headclient.Log
}

// HasLog reports whether the replica has a log.
func (r Replica) HasLog() bool { return r.Log != (headclient.Log{}) }

// ListReplicas returns the replicas of a service on each cluster that it has now, by cluster, application and deployment.
func (h *Heads) ListReplicas(ctx context.Context, service *v1alpha1.ClusterService) ([]Replica, error) {
	var all []Replica
	for _, cluster := range ClustersOf(service) {
		err := h.ask(ctx, Reference{Namespace: service.Namespace, Name: cluster}, func(c *Conversation) error {
			serving, err := c.Serve().Serving(ctx)
			all = append(all, ReplicasOf(service, cluster, serving)...)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// ClustersOf returns the names of the clusters that a service has now: that of the active version first.
func ClustersOf(service *v1alpha1.ClusterService) []string {
	var names []string
	for _, version := range versionsOf(service) {
		if version.ClusterName != "" && !slices.Contains(names, version.ClusterName) {
			names = append(names, version.ClusterName)
		}
	}
	return names
}

// ReplicasOf returns the replicas of a service by what Serve says on one of its clusters. Other services may share that.
func ReplicasOf(service *v1alpha1.ClusterService, cluster string, serving headclient.Serving) []Replica {
	isOurs := map[string]bool{}
	for _, version := range versionsOf(service) {
		for _, application := range version.Applications {
			isOurs[application.Name] = isOurs[application.Name] || version.ClusterName == cluster
		}
	}
	var all []Replica
	for _, name := range slices.Sorted(maps.Keys(serving.Applications)) {
		if !isOurs[name] {
			continue
		}
		for _, deployment := range serving.Applications[name].Deployments {
			for _, one := range deployment.Replicas {
				all = append(all, Replica{cluster, name, deployment.Name, one.ID, one.State, one.Log})
			}
		}
	}
	return all
}

func versionsOf(service *v1alpha1.ClusterService) []*v1alpha1.ServiceVersion {
	both := []*v1alpha1.ServiceVersion{service.Status.Active, service.Status.Candidate}
	return slices.DeleteFunc(both, func(version *v1alpha1.ServiceVersion) bool { return version == nil })
}
