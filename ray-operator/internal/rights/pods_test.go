package rights_test

import (
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Short names keep tables narrow.
type (
	pod       = corev1.PodSpec
	container = corev1.Container
	security  = corev1.SecurityContext
)

func projection(sources ...corev1.VolumeProjection) func(*pod) {
	return func(p *pod) {
		p.Volumes = append(p.Volumes, corev1.Volume{VolumeSource: corev1.VolumeSource{
			Projected: &corev1.ProjectedVolumeSource{Sources: sources},
		}})
	}
}

// podIdentities are pod templates by what they run as, with what they need.
var podIdentities = map[string]struct {
	edit func(*pod)
	want string
}{
	"an account":          {func(p *pod) { p.ServiceAccountName = "a" }, "account POD.serviceAccountName a"},
	"the default account": {func(p *pod) { p.ServiceAccountName = "default" }, ""},
	"an account like it": {func(p *pod) {
		p.ServiceAccountName = "default-a"
	}, "account POD.serviceAccountName default-a"},
	"an account as formerly": {func(p *pod) { p.DeprecatedServiceAccount = "a" }, "account POD.serviceAccount a"},
	"the default formerly":   {func(p *pod) { p.DeprecatedServiceAccount = "default" }, ""},
	"a token": {func(p *pod) {
		p.AutomountServiceAccountToken = new(true)
	}, "account POD.automountServiceAccountToken default"},
	"no token": {func(p *pod) { p.AutomountServiceAccountToken = new(false) }, ""},
	"a token of an account": {func(p *pod) {
		p.ServiceAccountName, p.AutomountServiceAccountToken = "a", new(true)
	}, "account POD.serviceAccountName a"},
	"a token of the newer field's account": {func(p *pod) {
		p.ServiceAccountName, p.DeprecatedServiceAccount, p.AutomountServiceAccountToken = "default", "a", new(true)
	}, "account POD.serviceAccount a; account POD.automountServiceAccountToken default"},
	"a token of the former field's account": {func(p *pod) {
		p.DeprecatedServiceAccount, p.AutomountServiceAccountToken = "a", new(true)
	}, "account POD.serviceAccount a"},
	"a projected token": {projection(
		corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}},
	), "account POD.volumes default"},
	"a projected certificate": {projection(
		corev1.VolumeProjection{PodCertificate: &corev1.PodCertificateProjection{}},
	), "account POD.volumes default"},
	"a token behind other projections": {projection(
		corev1.VolumeProjection{DownwardAPI: &corev1.DownwardAPIProjection{}},
		corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}},
	), "account POD.volumes default"},
	"other projections": {projection(
		corev1.VolumeProjection{DownwardAPI: &corev1.DownwardAPIProjection{}},
		corev1.VolumeProjection{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{}},
	), ""},
	"a priority class":     {func(p *pod) { p.PriorityClassName = "high" }, "priority-class POD.priorityClassName high"},
	"a runtime class":      {func(p *pod) { p.RuntimeClassName = new("kata") }, "runtime-class POD.runtimeClassName kata"},
	"a class without name": {func(p *pod) { p.RuntimeClassName = new("") }, ""},
}

func TestDemands_AreForWhatPodsRunAs(t *testing.T) {
	t.Parallel()
	for name, c := range podIdentities {
		t.Run(name, func(t *testing.T) { podNeeds(t, c.edit, c.want) })
	}
}

// A pod whose template names no account runs as that of podDefaults, so a token is of that one.
func TestDemands_OfTokensAreForTheDefaultsAccount(t *testing.T) {
	t.Parallel()
	template := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{AutomountServiceAccountToken: new(true)}}
	for account, want := range map[string]string{
		"a":       "account spec.podDefaults.serviceAccountName a",
		"default": "account spec.head.template.spec.automountServiceAccountToken default",
	} {
		spec := &v1beta1.ComputeClusterSpec{PodDefaults: &v1beta1.PodDefaults{ServiceAccountName: account}}
		spec.Head.Template = template
		if have := ofSpec(t, spec); have != want {
			t.Errorf("a token with %s in podDefaults needs %q, want %q", account, have, want)
		}
	}
}

// contexts are what a security context of a pod or of a container may say alike, and whether that needs a right.
var contexts = map[string]struct {
	context security
	needs   bool
}{
	"nothing":                {security{}, false},
	"root":                   {security{RunAsUser: new(int64(0))}, true},
	"user 1":                 {security{RunAsUser: new(int64(1))}, false},
	"root's group":           {security{RunAsGroup: new(int64(0))}, false},
	"perhaps root":           {security{RunAsNonRoot: new(false)}, true},
	"never root":             {security{RunAsNonRoot: new(true)}, false},
	"no seccomp":             {security{SeccompProfile: seccomp(corev1.SeccompProfileTypeUnconfined)}, true},
	"the runtime's seccomp":  {security{SeccompProfile: seccomp(corev1.SeccompProfileTypeRuntimeDefault)}, false},
	"seccomp of the node":    {security{SeccompProfile: seccomp(corev1.SeccompProfileTypeLocalhost)}, false},
	"no AppArmor":            {security{AppArmorProfile: appArmor(corev1.AppArmorProfileTypeUnconfined)}, true},
	"the runtime's AppArmor": {security{AppArmorProfile: appArmor(corev1.AppArmorProfileTypeRuntimeDefault)}, false},
	"options of SELinux":     {security{SELinuxOptions: &corev1.SELinuxOptions{}}, true},
	"options of Windows":     {security{WindowsOptions: &corev1.WindowsSecurityContextOptions{}}, true},
}

func seccomp(kind corev1.SeccompProfileType) *corev1.SeccompProfile {
	return &corev1.SeccompProfile{Type: kind}
}

func appArmor(kind corev1.AppArmorProfileType) *corev1.AppArmorProfile {
	return &corev1.AppArmorProfile{Type: kind}
}

func TestDemands_AreForWeakContexts(t *testing.T) {
	t.Parallel()
	for name, c := range contexts {
		want := ""
		if c.needs {
			want = "host POD"
		}
		t.Run("pod with "+name, func(t *testing.T) {
			podNeeds(t, func(p *pod) {
				p.SecurityContext = &corev1.PodSecurityContext{
					RunAsUser: c.context.RunAsUser, RunAsGroup: c.context.RunAsGroup, RunAsNonRoot: c.context.RunAsNonRoot,
					SeccompProfile: c.context.SeccompProfile, AppArmorProfile: c.context.AppArmorProfile,
					SELinuxOptions: c.context.SELinuxOptions, WindowsOptions: c.context.WindowsOptions,
				}
			}, want)
		})
		t.Run("container with "+name, func(t *testing.T) {
			containerNeeds(t, secured(c.context), want)
		})
	}
}

// podsOfHosts are edits of a pod that give it something of its node; podsOfNone do not.
var podsOfHosts, podsOfNone = map[string]func(*pod){
	"its network":   func(p *pod) { p.HostNetwork = true },
	"its processes": func(p *pod) { p.HostPID = true },
	"its IPC":       func(p *pod) { p.HostIPC = true },
	"a sysctl": func(p *pod) {
		p.SecurityContext = &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: "kernel.shm_rmid_forced"}}}
	},
	"a path beside a directory": func(p *pod) {
		p.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{
			EmptyDir: &corev1.EmptyDirVolumeSource{}, HostPath: &corev1.HostPathVolumeSource{},
		}}}
	},
	"a path in the second volume": func(p *pod) {
		p.Volumes = []corev1.Volume{{}, {VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{}}}}
	},
}, map[string]func(*pod){
	"no sysctl": func(p *pod) {
		p.SecurityContext = &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{}}
	},
	"processes of the pod": func(p *pod) { p.ShareProcessNamespace = new(true) },
	"users of the pod":     func(p *pod) { p.HostUsers = new(false) },
	"a group of files": func(p *pod) {
		p.SecurityContext = &corev1.PodSecurityContext{FSGroup: new(int64(0))}
	},
	"a name for an address":     func(p *pod) { p.HostAliases = []corev1.HostAlias{{IP: "10.0.0.1"}} },
	"a volume without a source": func(p *pod) { p.Volumes = []corev1.Volume{{Name: "v"}} },
}

// containersOfHosts and containersOfNone are the same of containers.
var containersOfHosts, containersOfNone = map[string]func(*container){
	"a port of its node": ports(corev1.ContainerPort{ContainerPort: 80}, corev1.ContainerPort{HostPort: 1}),
	"privileges":         secured(security{Privileged: new(true)}),
	"privileges by and by": func(c *container) {
		c.SecurityContext = &security{AllowPrivilegeEscalation: new(true)}
	},
	"a capability": capabilities(corev1.Capabilities{Add: []corev1.Capability{"NET_ADMIN"}}),
	"a view of processes": func(c *container) {
		c.SecurityContext = &security{ProcMount: new(corev1.DefaultProcMount)}
	},
}, map[string]func(*container){
	"a port of its pod": ports(corev1.ContainerPort{ContainerPort: 80}),
	"no privileges":     secured(security{Privileged: new(false)}),
	"no privileges by and by": func(c *container) {
		c.SecurityContext = &security{AllowPrivilegeEscalation: new(false)}
	},
	"capabilities dropped": capabilities(corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}),
	"no capability added":  capabilities(corev1.Capabilities{Add: []corev1.Capability{}}),
	"a root that is read": func(c *container) {
		c.SecurityContext = &security{ReadOnlyRootFilesystem: new(true)}
	},
	"a terminal": func(c *container) { c.Stdin, c.TTY = true, true },
}

func secured(context security) func(*container) {
	return func(c *container) { c.SecurityContext = &context }
}

func ports(all ...corev1.ContainerPort) func(*container) {
	return func(c *container) { c.Ports = all }
}

func capabilities(all corev1.Capabilities) func(*container) {
	return secured(security{Capabilities: &all})
}

func TestDemands_AreForWhatIsOfTheHost(t *testing.T) {
	t.Parallel()
	for want, edits := range map[string]map[string]func(*pod){"host POD": podsOfHosts, "": podsOfNone} {
		for name, edit := range edits {
			t.Run("pod with "+name, func(t *testing.T) { podNeeds(t, edit, want) })
		}
	}
	for want, edits := range map[string]map[string]func(*container){
		"host POD": containersOfHosts, "": containersOfNone,
	} {
		for name, edit := range edits {
			t.Run("container with "+name, func(t *testing.T) { containerNeeds(t, edit, want) })
		}
	}
}

// Each kind of volume alone, with nothing in it: whether it needs the host is as reviewed.
func TestDemands_AreForVolumesAsReviewed(t *testing.T) {
	t.Parallel()
	kinds := reflect.TypeFor[corev1.VolumeSource]()
	for i := range kinds.NumField() {
		name, _, _ := strings.Cut(kinds.Field(i).Tag.Get("json"), ",")
		t.Run(name, func(t *testing.T) {
			var source corev1.VolumeSource
			reflect.ValueOf(&source).Elem().Field(i).Set(reflect.New(kinds.Field(i).Type.Elem()))
			want := ""
			if reviewed[kinds][name] == "host" {
				want = "host POD"
			}
			podNeeds(t, func(p *pod) { p.Volumes = []corev1.Volume{{VolumeSource: source}} }, want)
		})
	}
}

// handlers are what a kubelet does for a probe or a hook, and whether that needs a right.
var handlers = map[string]struct {
	corev1.LifecycleHandler
	needs bool
}{
	"asks another host":        {corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Host: "10.0.0.1"}}, true},
	"connects to another host": {corev1.LifecycleHandler{TCPSocket: &corev1.TCPSocketAction{Host: "10.0.0.1"}}, true},
	"asks the pod":             {corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz"}}, false},
	"connects to the pod":      {corev1.LifecycleHandler{TCPSocket: &corev1.TCPSocketAction{}}, false},
	"runs a program":           {corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}, false},
	"asks by the name of a host": {corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{
		HTTPHeaders: []corev1.HTTPHeader{{Name: "Host", Value: "example.com"}},
	}}, false},
}

func probe(h corev1.LifecycleHandler) *corev1.Probe {
	return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: h.Exec, HTTPGet: h.HTTPGet, TCPSocket: h.TCPSocket}}
}

// whens are where a container has handlers.
var whens = map[string]func(*container, corev1.LifecycleHandler){
	"while it lives":    func(c *container, h corev1.LifecycleHandler) { c.LivenessProbe = probe(h) },
	"until it is ready": func(c *container, h corev1.LifecycleHandler) { c.ReadinessProbe = probe(h) },
	"while it starts":   func(c *container, h corev1.LifecycleHandler) { c.StartupProbe = probe(h) },
	"after its start":   func(c *container, h corev1.LifecycleHandler) { c.Lifecycle = &corev1.Lifecycle{PostStart: &h} },
	"before its stop":   func(c *container, h corev1.LifecycleHandler) { c.Lifecycle = &corev1.Lifecycle{PreStop: &h} },
}

func TestDemands_AreForProbesOfOtherHosts(t *testing.T) {
	t.Parallel()
	for name, h := range handlers {
		want := ""
		if h.needs {
			want = "host POD"
		}
		for when, set := range whens {
			t.Run(name+" "+when, func(t *testing.T) {
				containerNeeds(t, func(c *container) { set(c, h.LifecycleHandler) }, want)
			})
		}
	}
}
