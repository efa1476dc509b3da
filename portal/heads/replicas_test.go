package heads_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/heliostat-dev/heliostat/portal/heads"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

func TestReplicasOf_AreThoseOfTheService(t *testing.T) {
	replica := func(id string) headclient.Replica {
		return headclient.Replica{ID: id, State: "RUNNING", Log: headclient.Log{Node: "n", File: id}}
	}
	serving := headclient.Serving{Running: true, Applications: map[string]headclient.Application{
		"b":      {Deployments: []headclient.Deployment{{Name: "Model", Replicas: []headclient.Replica{replica("b1"), {ID: "b2"}}}}},
		"a":      {Deployments: []headclient.Deployment{{Name: "Front", Replicas: []headclient.Replica{replica("a1")}}, {Name: "Empty"}}},
		"next":   {Deployments: []headclient.Deployment{{Name: "Model", Replicas: []headclient.Replica{replica("n1")}}}},
		"theirs": {Deployments: []headclient.Deployment{{Name: "Model", Replicas: []headclient.Replica{replica("t1")}}}},
	}}
	version := func(cluster string, names ...string) *v1beta1.ServiceVersion {
		v := &v1beta1.ServiceVersion{ClusterName: cluster}
		for _, name := range names {
			v.Applications = append(v.Applications, v1beta1.ApplicationStatus{Name: name})
		}
		return v
	}
	for name, c := range map[string]struct {
		active, candidate *v1beta1.ServiceVersion
		clusters, want    []string
	}{
		"none":                     {nil, nil, nil, nil},
		"one version":              {version("x", "b", "a"), nil, []string{"x"}, []string{"a/Front/a1", "b/Model/b1", "b/Model/b2"}},
		"two on a cluster":         {version("x", "a"), version("x", "next"), []string{"x"}, []string{"a/Front/a1", "next/Model/n1"}},
		"two on clusters":          {version("y", "a"), version("x", "next"), []string{"y", "x"}, []string{"next/Model/n1"}},
		"one without a cluster":    {version("x", "a"), version("", "next"), []string{"x"}, []string{"a/Front/a1"}},
		"what Serve does not know": {version("x", "none"), nil, []string{"x"}, nil},
	} {
		service := &v1beta1.ClusterService{}
		service.Status.Active, service.Status.Candidate = c.active, c.candidate
		var got []string
		for _, one := range heads.ReplicasOf(heads.DeploymentsOf(service, "x", serving)) {
			got = append(got, fmt.Sprintf("%s/%s/%s", one.Application, one.Deployment, one.ID))
			if one.Cluster != "x" || one.HasLog() == (one.ID == "b2") {
				t.Errorf("%s: %+v", name, one)
			}
		}
		if !slices.Equal(got, c.want) || !slices.Equal(heads.ClustersOf(service), c.clusters) {
			t.Errorf("%s: %v on %v", name, got, heads.ClustersOf(service))
		}
	}
}
