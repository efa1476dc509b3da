package fakehead

import (
	"context"
	"slices"

	"github.com/heliostat-dev/heliostat/proto/gen/ray/rpc"
)

// Connect connects a driver in a namespace, until leave is called.
func (h *Head) Connect(namespace string) (leave func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	job := &rpc.JobTableData{Config: &rpc.JobConfig{RayNamespace: []byte(namespace)}}
	h.jobs = append(h.jobs, job)
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		job.IsDead, job.EndTime = true, uint64(h.clock.Now().UnixMilli())
	}
}

// Detach makes a detached actor, until kill is called.
func (h *Head) Detach(namespace, name string) (kill func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	actor := &rpc.ActorTableData{
		State: rpc.ActorTableData_ALIVE, IsDetached: true, Name: []byte(name), RayNamespace: []byte(namespace),
	}
	h.actors = append(h.actors, actor)
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		actor.State = rpc.ActorTableData_DEAD
	}
}

// Submit runs a job of the job API whose program connects to Ray, until finish is called.
func (h *Head) Submit(id string) (finish func()) {
	end := h.Detach("SUPERVISOR_ACTOR_RAY_NAMESPACE", "_ray_internal_job_actor_"+id)
	leave := h.Connect("user")
	return func() { leave(); end() }
}

// GetAllJobInfo lists drivers, that of Ray's own dashboard among them.
func (h *Head) GetAllJobInfo(context.Context, *rpc.GetAllJobInfoRequest) (*rpc.GetAllJobInfoReply, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	own := &rpc.JobTableData{Config: &rpc.JobConfig{RayNamespace: []byte("_ray_internal_dashboard")}}
	return &rpc.GetAllJobInfoReply{Status: &rpc.GcsStatus{}, JobInfoList: append([]*rpc.JobTableData{own}, h.jobs...)}, nil
}

// GetAllActorInfo lists actors by state, up to a limit.
func (h *Head) GetAllActorInfo(_ context.Context, request *rpc.GetAllActorInfoRequest) (*rpc.GetAllActorInfoReply, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	filters := request.GetFilters()
	listed := slices.DeleteFunc(append(h.supervised(), h.actors...), func(actor *rpc.ActorTableData) bool {
		return filters != nil && filters.State != nil && actor.GetState() != filters.GetState()
	})
	if request.Limit != nil {
		listed = listed[:min(len(listed), int(request.GetLimit()))]
	}
	return &rpc.GetAllActorInfoReply{Status: &rpc.GcsStatus{}, ActorTableData: listed}, nil
}
