package headclient

import (
	"context"
	"errors"

	"github.com/heliostat-dev/heliostat/proto/gen/ray/rpc"
)

// supervisors is the namespace of the actors that Ray runs for the jobs of its job API, and
// supervisor what the name of each begins with: the ID of its job is behind it.
const (
	supervisors = "SUPERVISOR_ACTOR_RAY_NAMESPACE"
	supervisor  = "_ray_internal_job_actor_"
)

// KillSubmission ends a job by force: the actor that runs it, and with it its process.
// It is what ends a job that is PENDING, which the job API cannot. False tells that there
// is no such actor: the job is over, or is not known. Within a second the job is FAILED.
func (c *Client) KillSubmission(ctx context.Context, id string) (bool, error) {
	act := "kill job " + text([]byte(id))
	if !jobID.MatchString(id) {
		return false, c.fail(Invalid, act, errJobID)
	}
	found, done, err := call(ctx, c, act, c.actors.GetNamedActorInfo,
		&rpc.GetNamedActorInfoRequest{Name: supervisor + id, RayNamespace: supervisors})
	if KindOf(err) == NotFound {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	actor := found.GetActorTableData()
	done()
	if string(actor.GetName()) != supervisor+id || len(actor.GetActorId()) != 16 {
		return false, c.fail(Protocol, act, errors.New("it knows an actor of another name, or without an ID"))
	}
	if err := c.options.permits(true); err != nil {
		return false, c.fail(Unavailable, act, err)
	}
	_, killed, err := call(ctx, c, act, c.actors.KillActorViaGcs,
		&rpc.KillActorViaGcsRequest{ActorId: actor.GetActorId(), ForceKill: true, NoRestart: true})
	killed()
	if KindOf(err) == NotFound {
		return false, nil
	}
	return err == nil, err
}
