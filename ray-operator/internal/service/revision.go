package service

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/lru"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/serveconfig"
)

// Revision is a version of a service: what Serve is asked for, and which pods it needs.
type Revision struct {
	// ID names what it holds: the same again is the same revision.
	ID string
	// Number counts the service's revisions, from 1; 0 for one that is not kept yet.
	Number int64
	// Pods names what cannot change without other pods; empty on a cluster that is not the
	// service's own.
	Pods string
	// Startup names what Serve reads when it first starts, and never again.
	Startup string
	Config  serveconfig.Config
	// Raw is the serveConfig in its canonical form.
	Raw json.RawMessage
	// Template is what its cluster was built from when it was kept, nil where it has none of its
	// own.
	Template *v1beta1.ClusterTemplate
	Object   *appsv1.ControllerRevision
}

// content is what a ControllerRevision of ours holds. The template is no part of the name: what
// matters of it there Pods tells.
type content struct {
	ServeConfig json.RawMessage          `json:"serveConfig"`
	Pods        string                   `json:"pods,omitempty"`
	Template    *v1beta1.ClusterTemplate `json:"template,omitempty"`
}

// revisionOf returns the version that a spec asks for.
func revisionOf(service *v1beta1.ClusterService) (Revision, error) {
	raw, err := canonical(service.Spec.ServeConfig.Raw)
	if err != nil {
		return Revision{}, fmt.Errorf("read spec.serveConfig: %w", err)
	}
	revision := Revision{Raw: raw}
	revision.Startup = serveconfig.Startup(raw)
	if revision.Config, err = serveconfig.Parse(raw); err != nil {
		return Revision{}, fmt.Errorf("read spec.serveConfig: %w", err)
	}
	if template := service.Spec.ClusterTemplate; template != nil {
		revision.Template = template.DeepCopy()
		if revision.Pods, err = podsOf(&template.Spec, revision.Startup); err != nil {
			return Revision{}, err
		}
	}
	return revision.named()
}

// named returns a revision with the ID of what it holds.
func (r Revision) named() (Revision, error) {
	var err error
	if r.ID, err = naming.ObjectHash(content{ServeConfig: r.Raw, Pods: r.Pods}); err != nil {
		return Revision{}, fmt.Errorf("name the revision: %w", err)
	}
	return r, nil
}

// numbered returns a revision with its number: the one that it was kept with, or the next one.
func numbered(revision Revision, kept map[string]Revision) Revision {
	if known, ok := kept[revision.ID]; ok {
		return known
	}
	for _, other := range kept {
		revision.Number = max(revision.Number, other.Number)
	}
	revision.Number++
	return revision
}

// canonical returns a JSON object with its keys in order.
func canonical(raw []byte) (json.RawMessage, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, err
	}
	var all any
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, err
	}
	return json.Marshal(all)
}

// podsOf names what of a spec cannot change without other pods: what the user wants of them,
// and what Serve reads when it first starts.
func podsOf(spec *v1beta1.ComputeClusterSpec, startup string) (string, error) {
	hash, err := naming.IntentHash("v1", []any{startup, intentsOf(spec)})
	if err != nil {
		return "", fmt.Errorf("name the pods: %w", err)
	}
	return hash, nil
}

// intentsOf returns what the user wants of the pods of each group, and of the head under the empty name.
func intentsOf(spec *v1beta1.ComputeClusterSpec) map[string]string {
	cluster := &v1beta1.ComputeCluster{Spec: *spec}
	intents := map[string]string{"": pod.Intent(cluster, "")}
	for i := range spec.WorkerGroups {
		name := spec.WorkerGroups[i].Name
		intents[name] = pod.Intent(cluster, name)
	}
	return intents
}

// areAlike reports whether two specs want the same of the head, and of each group that both have.
func areAlike(one, other map[string]string) bool {
	for name, intent := range one {
		if theirs, both := other[name]; both && theirs != intent {
			return false
		}
	}
	return true
}

// differByGroups reports whether two specs need the same pods, but for groups of workers that one of them alone has. They
// have a group in common, so that some workers serve in any case.
func differByGroups(a, b *v1beta1.ComputeClusterSpec) bool {
	one, other := intentsOf(a), intentsOf(b)
	common := 0
	for name := range one {
		if _, both := other[name]; both {
			common++
		}
	}
	return areAlike(one, other) && common > 1 && (common == len(one) || common == len(other))
}

// parseRevision reads what is kept of a version. It fails on what this operator did not write.
func parseRevision(object *appsv1.ControllerRevision) (Revision, error) {
	var kept content
	if err := json.Unmarshal(object.Data.Raw, &kept); err != nil {
		return Revision{}, fmt.Errorf("parse ControllerRevision %s: %w", object.Name, err)
	}
	raw, err := canonical(kept.ServeConfig)
	if err != nil {
		return Revision{}, fmt.Errorf("parse ControllerRevision %s: %w", object.Name, err)
	}
	config, err := serveconfig.Parse(raw)
	if err != nil {
		return Revision{}, fmt.Errorf("parse ControllerRevision %s: %w", object.Name, err)
	}
	at := strings.LastIndexByte(object.Name, '-')
	return Revision{ID: object.Name[at+1:], Number: object.Revision, Pods: kept.Pods, Startup: serveconfig.Startup(raw), Config: config, Raw: raw, Template: kept.Template, Object: object}, nil
}

// parsedRevisions remembers what was parsed of ControllerRevisions, whose content never changes. The zero value is
// ready.
type parsedRevisions struct {
	once  sync.Once
	known *lru.Cache
}

// mostParsed bounds how many are remembered: those of services that many passes look at. Each may take some 100 KiB.
const mostParsed = 256

// parseOnce parses a ControllerRevision, each version of it once. The result is shared, and must not be changed.
func (p *parsedRevisions) parseOnce(object *appsv1.ControllerRevision) (Revision, error) {
	p.once.Do(func() { p.known = lru.New(mostParsed) })
	key := [2]string{string(object.UID), object.ResourceVersion}
	if known, ok := p.known.Get(key); ok {
		if revision, is := known.(Revision); is {
			return revision, nil
		}
	}
	revision, err := parseRevision(object)
	if err == nil {
		p.known.Add(key, revision)
	}
	return revision, err
}

// toObject returns a revision as an object of the service's.
func (r Revision) toObject(service *v1beta1.ClusterService, number int64) *appsv1.ControllerRevision {
	text, _ := json.Marshal(content{r.Raw, r.Pods, r.Template}) // all came from JSON
	return &appsv1.ControllerRevision{
		ObjectMeta: desired.OfService(service, naming.ServiceRevision(service.Name, r.ID)),
		Revision:   number, Data: runtime.RawExtension{Raw: text},
	}
}

// numberText returns a revision's number for people.
func (r Revision) numberText() string { return strconv.FormatInt(r.Number, 10) }

// applicationNames returns the names of its applications, in order.
func (r Revision) applicationNames() []string {
	var names []string
	for _, application := range r.Config.Applications {
		names = append(names, application.Name)
	}
	slices.Sort(names)
	return names
}

// proxyPorts returns the ports of its proxies.
func (r Revision) proxyPorts() desired.Ports {
	ports := desired.Ports{HTTP: r.Config.HTTPPort}
	if r.Config.GRPC {
		ports.GRPC = r.Config.GRPCPort
	}
	return ports
}
