package convert

import (
	"cmp"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// managers of KubeRay's objects.
const (
	managerKubeRay    = "ray.io/kuberay-operator"
	managerMultiKueue = "kueue.x-k8s.io/multikueue"
)

// clusterPart is the spec of a cluster on its way: that of a RayCluster, or one within a job or a service.
type clusterPart struct {
	*conversion
	// at is the path of the spec.
	at   string
	spec *rayClusterSpec
	made v1beta1.ComputeClusterSpec
	// auth is what variables of the head say in place of authOptions, nil where none does.
	auth *rayAuth
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: kind}
}

func (c *conversion) computeCluster(spec *rayClusterSpec) runtime.Object {
	return &v1beta1.ComputeCluster{TypeMeta: typeMeta("ComputeCluster"), ObjectMeta: c.meta, Spec: c.cluster(spec)}
}

// cluster converts the spec of a cluster.
func (c *conversion) cluster(spec *rayClusterSpec) v1beta1.ComputeClusterSpec {
	p := &clusterPart{conversion: c, at: clusterAt[c.kind], spec: spec}
	p.made.Scheduler = c.scheduler()
	if class := c.marks[keyPriority]; class != "" {
		p.made.PodDefaults = &v1beta1.PodDefaults{PriorityClassName: class}
	}
	p.takeAutoscaling() // before the groups, some of whose fields are about it
	p.takeStore()       // before the head's template, whose variables it may take
	p.takeHead()
	p.takeGroups()
	p.takeVersion() // after the head's template, which may have the image
	p.takeAccess()
	p.takeNetwork()
	p.takeFront()
	p.takeRest()
	return p.made
}

// path is that of a field below the spec.
func (p *clusterPart) path(field string) string { return p.at + "." + field }

// owned reports whether a job or a service makes the cluster.
func (p *clusterPart) owned() bool { return p.kind != kindCluster }

func (p *clusterPart) takeRest() {
	switch {
	case p.spec.Suspend && p.owned():
		p.drop(p.path("suspend"), "the cluster of a job or a service follows that; set its own suspend")
	case !p.owned():
		p.made.Suspend = p.suspended("spec.suspend", p.spec.Suspend)
	}
	if p.owned() && p.spec.ManagedBy != "" {
		p.drop(p.path("managedBy"), "the manager of a job or a service manages its cluster too; set its own managedBy")
	} else {
		p.made.ManagedBy = p.manager(p.path("managedBy"), p.spec.ManagedBy, managerKubeRay)
	}
	if u := p.spec.UpgradeStrategy; u != nil {
		switch u.Type {
		case "", "None":
		case "Recreate":
			p.made.UpgradeStrategy = &v1beta1.ClusterUpgradeStrategy{Type: v1beta1.ClusterUpgradeRecreate}
		default:
			p.refuse(p.path("upgradeStrategy.type"), "ray.io knows Recreate and None; use one of them")
		}
	}
}

var versionInTag = regexp.MustCompile(`^(nightly|[0-9]+\.[0-9]+\.[0-9]+((a|b|rc)[0-9]+)?)`)

// takeVersion reads the version from the image where the spec does not say it.
func (p *clusterPart) takeVersion() {
	p.made.RayVersion = p.spec.RayVersion
	if p.made.RayVersion != "" {
		return
	}
	_, tag, _ := strings.Cut(p.made.Image[strings.LastIndex(p.made.Image, "/")+1:], ":")
	version := versionInTag.FindString(tag)
	if version == "" {
		p.refuse(p.path("rayVersion"), "the version of Ray is in neither rayVersion nor the tag of the head's image; set "+
			"rayVersion")
		return
	}
	p.made.RayVersion = version
	p.adjust(p.path("rayVersion"), "rayVersion", version+" is read from the tag of the head's image; correct it if "+
		"the image holds another")
}

func (p *clusterPart) takeAutoscaling() {
	o := p.spec.AutoscalerOptions
	if !p.spec.EnableInTreeAutoscaling {
		if o != nil && o.IdleTimeoutSeconds != nil {
			p.drop(p.path("autoscalerOptions.idleTimeoutSeconds"), withoutAutoscaling)
		}
		if o != nil && o.UpscalingMode != "" {
			p.drop(p.path("autoscalerOptions.upscalingMode"), withoutAutoscaling)
		}
		return
	}
	p.made.Autoscaling = &v1beta1.Autoscaling{}
	if o == nil {
		return
	}
	p.made.Autoscaling.IdleTimeoutSeconds = p.atLeastOne(p.path("autoscalerOptions.idleTimeoutSeconds"),
		"autoscaling.idleTimeoutSeconds", o.IdleTimeoutSeconds)
	switch mode := v1beta1.Pace(o.UpscalingMode); mode {
	case "", v1beta1.PaceDefault, v1beta1.PaceAggressive, v1beta1.PaceConservative:
		p.made.Autoscaling.Pace = mode
	default:
		p.refuse(p.path("autoscalerOptions.upscalingMode"), "ray.io knows Default, Aggressive and Conservative; use one "+
			"of them")
	}
}

const withoutAutoscaling = "it has no effect without autoscaling; set enableInTreeAutoscaling, or leave it out"

// takeAccess closes what was open, unless the user keeps it open.
func (p *clusterPart) takeAccess() {
	auth, path := cmp.Or(p.spec.AuthOptions, p.auth), p.path("authOptions.mode")
	if auth == nil {
		auth, path = &rayAuth{}, p.path("authOptions")
	}
	switch auth.Mode {
	case "token":
		p.keep(path)
		if auth.SecretName != "" {
			p.made.Authentication = &v1beta1.Authentication{Mode: v1beta1.AuthenticationToken, SecretName: auth.SecretName}
		}
	case "", "disabled":
		p.takeOpen(path, auth)
	default:
		p.refuse(path, "ray.io knows token and disabled; use one of them")
	}
}

func (p *clusterPart) takeOpen(path string, auth *rayAuth) {
	if auth.SecretName != "" {
		p.drop(p.path("authOptions.secretName"), "without the mode token it has no effect; set the mode too")
	}
	if p.options.KeepOpen {
		p.keep(path)
		p.made.Authentication = &v1beta1.Authentication{Mode: v1beta1.AuthenticationDisabled}
		return
	}
	p.change(path, "authentication.mode", "the cluster was open to everyone who reaches it, and now asks for the "+
		"token in the Secret NAME-token; "+
		"give clients the token, or pass --keep-open")
}

// takeTLS is about encryption between the pods.
func (p *clusterPart) takeTLS() {
	if p.spec.TLSOptions != nil && p.spec.TLSOptions.Enabled {
		p.network().Encryption = v1beta1.Enabled
	}
}

// network is the part of the result about it, which comes to be when something is to say.
func (p *clusterPart) network() *v1beta1.Network {
	if p.made.Network == nil {
		p.made.Network = &v1beta1.Network{}
	}
	return p.made.Network
}
