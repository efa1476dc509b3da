package headclient

import (
	"encoding/json"
	"time"
)

// ApplicationState is what Serve says of an application, in its own words.
type ApplicationState string

// States of an application. DEPLOY_FAILED alone stays until something new is deployed;
// UNHEALTHY may heal by itself.
const (
	ApplicationNotStarted   ApplicationState = "NOT_STARTED"
	ApplicationDeploying    ApplicationState = "DEPLOYING"
	ApplicationDeployFailed ApplicationState = "DEPLOY_FAILED"
	ApplicationRunning      ApplicationState = "RUNNING"
	ApplicationUnhealthy    ApplicationState = "UNHEALTHY"
	ApplicationDeleting     ApplicationState = "DELETING"
)

// Serving is what Ray Serve on one head says of itself.
type Serving struct {
	// Running: a controller answered. Without one there is nothing else here, which Ray says
	// of a Serve that was never started and of one that it could not find just then.
	Running bool
	// Applications by their names.
	Applications map[string]Application
	// Targets are the proxies that take requests. One that drains is not among them.
	Targets []Target
	// Capacity is Serve's target_capacity in percent, nil where none was asked for.
	Capacity *float64
}

// Application is one application as Serve tells of it.
type Application struct {
	Name  string
	State ApplicationState
	// Message is the end of what Serve says of it.
	Message     string
	RoutePrefix string
	// Declarative: it came over the REST API, which takes it away when it is not named again.
	Declarative bool
	// Deployed is the configuration that it came with, as Serve gives it back; nil for others.
	Deployed json.RawMessage
	// DeployedAt is when it was deployed last, by the head's clock.
	DeployedAt  time.Time
	Deployments []Deployment
}

// Deployment is one part of an application.
type Deployment struct {
	Name string
	// State and Trigger in Serve's own words: HEALTHY, UPDATING, UNHEALTHY, DEPLOY_FAILED, …
	State, Trigger string
	Message        string
	// Wanted is how many replicas it must have, Running how many do run; both are 0 where it
	// was scaled to nothing.
	Wanted, Running int
	// Replicas are those that it has, in whatever state.
	Replicas []Replica
	// Failed is the log of the replica that died last, empty if none did.
	Failed Log
}

// Replica is one process of a deployment.
type Replica struct {
	ID, State string
	// Instance is the UID of the pod that it runs in, empty while it has none.
	Instance string
	Log      Log
}

// Log is a file of a node's log directory.
type Log struct {
	// Node is the Ray node's ID in hexadecimal, File the path below its log directory.
	Node, File string
}

// Target is a proxy that takes requests.
type Target struct {
	// Protocol is HTTP or gRPC.
	Protocol string
	// Instance is the UID of the pod that it runs in.
	Instance string
	IP       string
	Port     int32
}
