package headclient

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/heliostat-dev/heliostat/proto/gen/ray/rpc"
	"github.com/heliostat-dev/heliostat/proto/gen/ray/rpc/autoscaler"
)

// Report is what an autoscaler tells Ray: "ray status" and the dashboard show it.
type Report struct {
	// At is the time by which reports are ordered: of two, GCS keeps the later one.
	At time.Time
	// Wanted are workers without a pod yet, Coming those with one.
	Wanted []Wanted
	Coming []Coming
	Failed []Failed
	// Requests, Gangs and Floor can never fit. They are sent back as they came with a
	// Demand: drivers are told, and Ray may cancel what is equal to them.
	Requests []Request
	Gangs    []Gang
	Floor    []Request
}

// Wanted is a number of workers of a type.
type Wanted struct {
	Type  string
	Count int
	Since time.Time
}

// Coming is a worker that has not joined.
type Coming struct {
	Type, Instance, Address string
	// Details are for people; what is over 256 bytes is cut.
	Details string
}

// Failed is a number of workers that could not be had.
type Failed struct {
	Type  string
	Count int
	// Reason is for people; what is over 256 bytes is cut.
	Reason       string
	Since, Until time.Time
}

// Report tells Ray what the autoscaler does. What was told before, by whatever process, no
// longer counts.
func (c *Client) Report(ctx context.Context, report Report) error {
	const act = "report to the head"
	if report.At.Unix() <= 0 {
		return c.fail(Invalid, act, fmt.Errorf("its time %s is before 1970", report.At))
	}
	state, err := report.write()
	if err != nil {
		return c.fail(Invalid, act, err)
	}
	state.AutoscalerStateVersion = c.surpass(report.At.UnixNano())
	_, done, err := call(ctx, c, act, c.autoscaler.ReportAutoscalingState, &autoscaler.ReportAutoscalingStateRequest{AutoscalingState: state})
	done()
	return err
}

// surpass gives the version for a report of a time: the time, or one more than the last that
// was sent. GCS does not tell which one it knows, so clocks alone order the reports of two
// clients.
func (c *Client) surpass(at int64) int64 {
	for {
		last := c.reported.Load()
		version := max(at, last+1)
		if c.reported.CompareAndSwap(last, version) {
			return version
		}
	}
}

var errNotRead = errors.New("what never fits was not read from a head")

func (r Report) write() (*autoscaler.AutoscalingState, error) {
	state := &autoscaler.AutoscalingState{}
	if err := r.writeWorkers(state); err != nil {
		return nil, err
	}
	for _, one := range r.Requests {
		if one.raw == nil {
			return nil, errNotRead
		}
		state.InfeasibleResourceRequests = append(state.InfeasibleResourceRequests, one.raw)
	}
	for _, one := range r.Gangs {
		if one.raw == nil {
			return nil, errNotRead
		}
		state.InfeasibleGangResourceRequests = append(state.InfeasibleGangResourceRequests, one.raw)
	}
	if len(r.Floor) == 0 {
		return state, nil
	}
	floor := &autoscaler.ClusterResourceConstraint{}
	for _, one := range r.Floor {
		if one.raw == nil {
			return nil, errNotRead
		}
		floor.ResourceRequests = append(floor.ResourceRequests, &autoscaler.ResourceRequestByCount{Request: one.raw, Count: int64(one.Count)})
	}
	state.InfeasibleClusterResourceConstraints = []*autoscaler.ClusterResourceConstraint{floor}
	return state, nil
}

func (r Report) writeWorkers(state *autoscaler.AutoscalingState) error {
	for _, one := range r.Wanted {
		count, err := count32(one.Count)
		if err != nil {
			return err
		}
		state.PendingInstanceRequests = append(state.PendingInstanceRequests, &autoscaler.PendingInstanceRequest{
			InstanceTypeName: text([]byte(one.Type)), RayNodeTypeName: text([]byte(one.Type)), Count: count, RequestTs: seconds(one.Since),
		})
	}
	for _, one := range r.Coming {
		state.PendingInstances = append(state.PendingInstances, &autoscaler.PendingInstance{
			InstanceTypeName: text([]byte(one.Type)), RayNodeTypeName: text([]byte(one.Type)), InstanceId: text([]byte(one.Instance)),
			IpAddress: text([]byte(one.Address)), Details: text([]byte(one.Details)),
		})
	}
	for _, one := range r.Failed {
		count, err := count32(one.Count)
		if err != nil {
			return err
		}
		state.FailedInstanceRequests = append(state.FailedInstanceRequests, &autoscaler.FailedInstanceRequest{
			InstanceTypeName: text([]byte(one.Type)), RayNodeTypeName: text([]byte(one.Type)), Count: count,
			Reason: text([]byte(one.Reason)), StartTs: seconds(one.Since), FailedTs: seconds(one.Until),
		})
	}
	return nil
}

func count32(n int) (int32, error) {
	if n < 0 || n > math.MaxInt32 {
		return 0, fmt.Errorf("%d workers are not possible", n)
	}
	return int32(n), nil
}

// seconds are Ray's times in reports. No time is 0.
func seconds(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.Unix()
}

// Shape is a kind of node that a cluster can have.
type Shape struct {
	// Name is the group's.
	Name string
	// Resources are those of one node, memory in bytes. Ray is told whole numbers, rounded
	// down: no library must count on more than there is.
	Resources map[string]float64
	// Min and Max bound how many nodes there are, Max below zero is no limit.
	Min, Max int
}

// Configure tells Ray's libraries which nodes there could be, without the head's. GCS keeps
// it in its key-value store.
func (c *Client) Configure(ctx context.Context, shapes []Shape) error {
	const act = "tell the head what nodes there could be"
	config := &autoscaler.ClusterConfig{}
	for _, shape := range shapes {
		group, err := shape.write()
		if err != nil {
			return c.fail(Invalid, act, err)
		}
		config.NodeGroupConfigs = append(config.NodeGroupConfigs, group)
	}
	_, done, err := call(ctx, c, act, c.autoscaler.ReportClusterConfig, &autoscaler.ReportClusterConfigRequest{ClusterConfig: config})
	done()
	return err
}

func (s Shape) write() (*autoscaler.NodeGroupConfig, error) {
	if s.Min < 0 || s.Min > math.MaxInt32 || s.Max > math.MaxInt32 {
		return nil, fmt.Errorf("from %d to %d nodes are not possible", s.Min, s.Max)
	}
	if _, err := readResources(s.Resources); err != nil {
		return nil, err
	}
	whole := make(map[string]uint64, len(s.Resources))
	for name, amount := range s.Resources {
		if amount >= 1 {
			whole[name] = uint64(min(amount, MaxAmount))
		}
	}
	return &autoscaler.NodeGroupConfig{Name: text([]byte(s.Name)), Resources: whole, MinCount: uint32(s.Min), MaxCount: int32(max(s.Max, -1))}, nil
}

// metricsKey is where Ray's dashboard looks for its autoscaler's metrics, for Prometheus to
// find.
const metricsKey = "AutoscalerMetricsAddress"

// Announce tells Ray where the autoscaler's metrics are, as host:port.
func (c *Client) Announce(ctx context.Context, address string) error {
	const act = "tell the head where metrics are"
	if err := checkAddress(address); err != nil {
		return c.fail(Invalid, act, err)
	}
	_, done, err := call(ctx, c, act, c.store.InternalKVPut, &rpc.InternalKVPutRequest{Key: []byte(metricsKey), Value: []byte(address), Overwrite: true})
	done()
	return err
}
