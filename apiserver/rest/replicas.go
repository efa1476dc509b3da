package rest

import (
	"context"
	"net/http"
	"slices"

	"google.golang.org/grpc"

	"github.com/heliostat-dev/heliostat/apiserver/logs"
	"github.com/heliostat-dev/heliostat/apiserver/view"
	"github.com/heliostat-dev/heliostat/portal/heads"
	"github.com/heliostat-dev/heliostat/portal/problem"
	heliostatv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/v1"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// ListReplicas implements the protocol.
func (p *portal) ListReplicas(
	ctx context.Context, r *heliostatv1.ListReplicasRequest,
) (*heliostatv1.ListReplicasResponse, error) {
	if err := p.permitAt(ctx, "ListReplicas", r, ""); err != nil {
		return nil, err
	}
	all, err := deploymentsOf(ctx, p, r)
	if err != nil {
		return nil, err
	}
	answer := &heliostatv1.ListReplicasResponse{}
	for _, one := range all {
		answer.Deployments = append(answer.Deployments, &heliostatv1.Deployment{Cluster: one.Cluster,
			Application: valid(one.Application), Name: valid(one.Name)})
	}
	for _, one := range heads.ReplicasOf(all) {
		answer.Replicas = append(answer.Replicas, &heliostatv1.Replica{Cluster: one.Cluster, Application: valid(one.Application),
			Deployment: valid(one.Deployment), Id: valid(one.ID), State: valid(one.State), HasLog: one.HasLog()})
	}
	return answer, nil
}

// deploymentsOf returns the deployments of a service on each of its clusters.
func deploymentsOf(ctx context.Context, p *portal, of place) ([]heads.Deployment, error) {
	object, _, _ := p.View.Find(view.Key{Kind: view.Services, Namespace: of.GetNamespace(), Name: of.GetName()})
	service, is := object.(*v1beta1.ClusterService)
	if !is {
		return nil, problem.New(http.StatusNotFound, "NotFound", "there is no such service", "check its name")
	}
	all, err := p.Heads.ListDeployments(ctx, service)
	return all, ofHead(err)
}

// ReadReplicaLog implements the protocol.
func (p *portal) ReadReplicaLog(
	r *heliostatv1.ReadReplicaLogRequest, stream grpc.ServerStreamingServer[heliostatv1.LogEvent],
) error {
	return p.readLog(stream.Context(), r, func(event logs.Event) error { return stream.Send(eventOf(event)) }, nil)
}

// readReplica reads the log of a replica of a service, and of no other one on its clusters.
func readReplica(
	ctx context.Context, p *portal, r *heliostatv1.ReadReplicaLogRequest, options logs.Options, sink logs.Sink,
) error {
	deployments, err := deploymentsOf(ctx, p, r)
	if err != nil {
		return err
	}
	all := heads.ReplicasOf(deployments)
	at := slices.IndexFunc(all, func(one heads.Replica) bool { return one.ID == r.GetId() && one.HasLog() })
	if at < 0 {
		return problem.New(http.StatusNotFound, "NotFound", "the service has no such replica, or it has no log yet",
			"list its replicas")
	}
	return p.Logs.ReadReplica(ctx, heads.Reference{Namespace: r.GetNamespace(), Name: all[at].Cluster}, all[at], options, sink)
}
