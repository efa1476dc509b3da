package heads

import (
	"context"
	"maps"
	"slices"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// Deployment is one of an application of a service.
type Deployment struct {
	Cluster, Application, Name string
	Replicas                   []Replica
}

// Replica is a process of a deployment.
type Replica struct {
	Cluster, Application, Deployment string
	// ID is Serve's, unique on its cluster, and State is in Serve's words.
	ID, State string
	// Log is empty while the replica has no place.
	Log headclient.Log
}

// HasLog reports whether the replica has a log.
func (r Replica) HasLog() bool { return r.Log != (headclient.Log{}) }

// ListDeployments returns the deployments of a service on each cluster that it has now, by cluster, application and name.
func (h *Heads) ListDeployments(ctx context.Context, service *v1beta1.ClusterService) ([]Deployment, error) {
	var all []Deployment
	for _, cluster := range ClustersOf(service) {
		err := h.ask(ctx, Reference{Namespace: service.Namespace, Name: cluster}, func(c *Conversation) error {
			serving, err := c.Serve().Serving(ctx)
			all = append(all, DeploymentsOf(service, cluster, serving)...)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// ClustersOf returns the names of the clusters that a service has now: that of the active version first.
func ClustersOf(service *v1beta1.ClusterService) []string {
	var names []string
	for _, version := range versionsOf(service) {
		if version.ClusterName != "" && !slices.Contains(names, version.ClusterName) {
			names = append(names, version.ClusterName)
		}
	}
	return names
}

// ReplicasOf returns the replicas of deployments.
func ReplicasOf(deployments []Deployment) []Replica {
	var all []Replica
	for _, one := range deployments {
		all = append(all, one.Replicas...)
	}
	return all
}

// IsDeployed reports whether Serve knows the deployments of each application that a service has now. It does not while it
// builds one.
func IsDeployed(service *v1beta1.ClusterService, deployments []Deployment) bool {
	for _, version := range versionsOf(service) {
		for _, application := range version.Applications {
			isIts := func(one Deployment) bool {
				return one.Cluster == version.ClusterName && one.Application == application.Name
			}
			if !slices.ContainsFunc(deployments, isIts) {
				return false
			}
		}
	}
	return len(deployments) > 0
}

// DeploymentsOf returns the deployments of a service by what Serve says on one of its clusters. Other services may share that.
func DeploymentsOf(service *v1beta1.ClusterService, cluster string, serving headclient.Serving) []Deployment {
	isOurs := map[string]bool{}
	for _, version := range versionsOf(service) {
		for _, application := range version.Applications {
			isOurs[application.Name] = isOurs[application.Name] || version.ClusterName == cluster
		}
	}
	var all []Deployment
	for _, name := range slices.Sorted(maps.Keys(serving.Applications)) {
		if !isOurs[name] {
			continue
		}
		for _, said := range serving.Applications[name].Deployments {
			deployment := Deployment{Cluster: cluster, Application: name, Name: said.Name}
			for _, one := range said.Replicas {
				deployment.Replicas = append(deployment.Replicas, Replica{cluster, name, said.Name, one.ID, one.State, one.Log})
			}
			all = append(all, deployment)
		}
	}
	return all
}

func versionsOf(service *v1beta1.ClusterService) []*v1beta1.ServiceVersion {
	both := []*v1beta1.ServiceVersion{service.Status.Active, service.Status.Candidate}
	return slices.DeleteFunc(both, func(version *v1beta1.ServiceVersion) bool { return version == nil })
}
