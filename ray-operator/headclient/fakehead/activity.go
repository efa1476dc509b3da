package fakehead

import (
	"context"
	"fmt"
	"slices"

	"github.com/heliostat-dev/heliostat/proto/gen/ray/rpc"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// activity is the drivers and actors of a head.
type activity struct {
	*shared
	rpc.UnimplementedJobInfoGcsServiceServer
	rpc.UnimplementedActorInfoGcsServiceServer
	jobs    *jobs
	drivers []*rpc.JobTableData
	actors  []*rpc.ActorTableData
}

// notFound is the code that replies of GCS have for what is not there.
const notFound = 17

// Connect connects a driver in a namespace, until leave is called.
func (a *activity) Connect(namespace string) (leave func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	job := &rpc.JobTableData{Config: &rpc.JobConfig{RayNamespace: []byte(namespace)}}
	a.drivers = append(a.drivers, job)
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		job.IsDead, job.EndTime = true, uint64(a.clock.Now().UnixMilli())
	}
}

// Detach makes a detached actor, until kill is called.
func (a *activity) Detach(namespace, name string) (kill func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	actor := &rpc.ActorTableData{
		State: rpc.ActorTableData_ALIVE, IsDetached: true, Name: []byte(name), RayNamespace: []byte(namespace),
	}
	a.actors = append(a.actors, actor)
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		actor.State = rpc.ActorTableData_DEAD
	}
}

// Submit runs a job of the job API whose program connects to Ray, until finish is called.
func (a *activity) Submit(id string) (finish func()) {
	end := a.Detach("SUPERVISOR_ACTOR_RAY_NAMESPACE", "_ray_internal_job_actor_"+id)
	leave := a.Connect("user")
	return func() { leave(); end() }
}

// GetAllJobInfo lists drivers, that of Ray's own dashboard among them.
func (a *activity) GetAllJobInfo(context.Context, *rpc.GetAllJobInfoRequest) (*rpc.GetAllJobInfoReply, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	own := &rpc.JobTableData{Config: &rpc.JobConfig{RayNamespace: []byte("_ray_internal_dashboard")}}
	return &rpc.GetAllJobInfoReply{Status: &rpc.GcsStatus{}, JobInfoList: append([]*rpc.JobTableData{own}, a.drivers...)}, nil
}

// GetAllActorInfo lists actors by state, up to a limit.
func (a *activity) GetAllActorInfo(_ context.Context, request *rpc.GetAllActorInfoRequest) (*rpc.GetAllActorInfoReply, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	filters := request.GetFilters()
	listed := slices.DeleteFunc(append(a.jobs.supervised(), a.actors...), func(actor *rpc.ActorTableData) bool {
		return filters != nil && filters.State != nil && actor.GetState() != filters.GetState()
	})
	if request.Limit != nil {
		listed = listed[:min(len(listed), int(request.GetLimit()))]
	}
	return &rpc.GetAllActorInfoReply{Status: &rpc.GcsStatus{}, ActorTableData: listed}, nil
}

// GetNamedActorInfo finds the actor of a job.
func (a *activity) GetNamedActorInfo(_ context.Context, request *rpc.GetNamedActorInfoRequest) (*rpc.GetNamedActorInfoReply, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, actor := range append(a.jobs.supervised(), a.actors...) {
		if string(actor.GetName()) == request.GetName() && string(actor.GetRayNamespace()) == request.GetRayNamespace() &&
			actor.GetState() != rpc.ActorTableData_DEAD {
			return &rpc.GetNamedActorInfoReply{Status: &rpc.GcsStatus{}, ActorTableData: actor}, nil
		}
	}
	return &rpc.GetNamedActorInfoReply{Status: &rpc.GcsStatus{
		Code: notFound, Message: fmt.Appendf(nil, "Actor with name '%s' was not found.", request.GetName()),
	}}, nil
}

// KillActorViaGcs ends the actor of a job, and with it the job.
func (a *activity) KillActorViaGcs(_ context.Context, request *rpc.KillActorViaGcsRequest) (*rpc.KillActorViaGcsReply, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.jobs.settle()
	for _, one := range a.jobs.live {
		if string(one.actor().GetActorId()) == string(request.GetActorId()) {
			one.end(headclient.JobFailed, a.clock.Now(), "Job supervisor actor died: The actor died unexpectedly before finishing this task.\n"+
				"The actor is dead because it was killed by `ray.kill`.", "JOB_SUPERVISOR_ACTOR_DIED")
			return &rpc.KillActorViaGcsReply{Status: &rpc.GcsStatus{}}, nil
		}
	}
	return &rpc.KillActorViaGcsReply{Status: &rpc.GcsStatus{
		Code: notFound, Message: fmt.Appendf(nil, "Could not find actor with ID %x.", request.GetActorId()),
	}}, nil
}
