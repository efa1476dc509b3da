package headclient

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/heliostat-dev/heliostat/proto/gen/ray/rpc"
)

// Activity is what uses a cluster, apart from tasks and actors that wait (State.Pending).
type Activity struct {
	// Drivers is how many programs are connected, those of Ray itself left out.
	Drivers int
	// Jobs is how many submitted jobs are not over, those that have not connected yet, or
	// never will, among them.
	Jobs int
	// Actors is how many detached actors live: Serve's, and those that programs left behind
	// to be used. What Ray's libraries leave behind for themselves is left out.
	Actors int
	// Uncounted tells that there are more actors than were looked through.
	Uncounted bool
	// LastEnded is when the last driver left, by the head's clock; zero if none has.
	LastEnded time.Time
}

// Any reports whether something uses the cluster.
func (a Activity) Any() bool { return a.Drivers > 0 || a.Jobs > 0 || a.Actors > 0 || a.Uncounted }

// maxActors is how many actors of one state are looked through.
const maxActors = 10_000

// Activity asks what uses the cluster. It takes four calls.
func (c *Client) Activity(ctx context.Context) (Activity, error) {
	var activity Activity
	yes := true
	jobs, done, err := call(ctx, c, "list the drivers of the head", c.jobs.GetAllJobInfo,
		&rpc.GetAllJobInfoRequest{SkipSubmissionJobInfoField: &yes, SkipIsRunningTasksField: &yes})
	if err != nil {
		return Activity{}, err
	}
	err = activity.addJobs(jobs)
	done()
	if err != nil {
		return Activity{}, c.fail(Protocol, "list the drivers of the head", err)
	}
	// By state, because GCS also keeps up to 100,000 dead ones. A job whose environment is
	// being made has an actor that is being created, and one on a lost node restarts.
	for _, state := range []rpc.ActorTableData_ActorState{
		rpc.ActorTableData_ALIVE, rpc.ActorTableData_PENDING_CREATION, rpc.ActorTableData_RESTARTING,
	} {
		limit := int64(maxActors)
		actors, done, err := call(ctx, c, "list the actors of the head", c.actors.GetAllActorInfo,
			&rpc.GetAllActorInfoRequest{Limit: &limit, Filters: &rpc.GetAllActorInfoRequest_Filters{State: &state}})
		if err != nil {
			return Activity{}, err
		}
		activity.addActors(actors)
		done()
	}
	return activity, nil
}

// addJobs counts drivers. Those of Ray's own parts have a namespace of theirs.
func (a *Activity) addJobs(reply *rpc.GetAllJobInfoReply) error {
	for _, job := range reply.GetJobInfoList() {
		if internal(job.GetConfig().GetRayNamespace()) {
			continue
		}
		if !job.GetIsDead() {
			a.Drivers++
			continue
		}
		ended, err := instant(job.GetEndTime())
		if err != nil {
			return fmt.Errorf("when a driver ended: %w", err)
		}
		if ended.After(a.LastEnded) {
			a.LastEnded = ended
		}
	}
	return nil
}

// addActors counts detached actors. Each submitted job has one of Ray's own that watches
// it for as long as it lasts.
func (a *Activity) addActors(reply *rpc.GetAllActorInfoReply) {
	for _, actor := range reply.GetActorTableData() {
		switch {
		case !actor.GetIsDetached() || actor.GetState() == rpc.ActorTableData_DEAD:
		case string(actor.GetRayNamespace()) == supervisors:
			if strings.HasPrefix(string(actor.GetName()), supervisor) {
				a.Jobs++
			}
		case !internal(actor.GetRayNamespace()) && !leftover(string(actor.GetRayNamespace())):
			a.Actors++
		}
	}
	a.Uncounted = a.Uncounted || len(reply.GetActorTableData()) >= maxActors
}

// leftover reports whether a namespace is that of actors which Ray's own libraries make once
// and never end: read in Ray 2.60's source. One dataset would keep a cluster in use for ever.
func leftover(namespace string) bool {
	switch namespace {
	case "_dataset_stats_actor", "_dataset_stats_summary_actor", "ActorLocationTracker", "AutoscalingCoordinator",
		"AutoscalingRequester", "DataUsageCollectionActor", "ray.dataset", "ray_data_shuffle_disk", // Ray Data
		"_train_state_actor",                         // Ray Train
		"llm_batch_telemetry", "llm_serve_telemetry": // Ray LLM
		return true
	default:
		return false
	}
}

func internal(namespace []byte) bool { return bytes.HasPrefix(namespace, []byte("_ray_internal_")) }
