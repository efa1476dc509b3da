package pod_test

import (
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

// defaulted is a cluster with podDefaults that meet the template of its group.
func defaulted() *v1beta1.ComputeCluster {
	group := templated()
	group.Template.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "both"}, {Name: "own"}}
	group.Template.Spec.Tolerations = []corev1.Toleration{{Key: "own", Operator: corev1.TolerationOpExists}}
	group.Template.Spec.Containers[1].EnvFrom = []corev1.EnvFromSource{secretEnv("own")}
	cluster := testkit.Cluster("demo", group)
	cluster.Spec.PodDefaults = &v1beta1.PodDefaults{
		ServiceAccountName: "default-account", PriorityClassName: "batch",
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: "registry"}, {Name: "both"}},
		Labels:           map[string]string{"team": "default", "cost": "42"},
		Annotations:      map[string]string{"example.com/owner": "default", "example.com/page": "7"},
		Env:              []corev1.EnvVar{{Name: "MINE", Value: "default"}, {Name: "RAY_memory_usage_threshold", Value: "0.9"}},
		EnvFrom:          []corev1.EnvFromSource{secretEnv("default")},
		NodeSelector:     map[string]string{"pool": "default", "disk": "ssd"},
		Tolerations:      []corev1.Toleration{{Key: "default", Operator: corev1.TolerationOpExists}},
	}
	return cluster
}

func secretEnv(name string) corev1.EnvFromSource {
	return corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}
}

// TestTheTemplateWins over podDefaults, thing by thing; what it says nothing of is
// theirs.
func TestTheTemplateWins(t *testing.T) {
	built := worker(defaulted())
	spec, env := built.Spec, variables(t, built)
	for what, pair := range map[string][2]any{
		"label of both":         {built.Labels["team"], "a"},
		"label of one":          {built.Labels["cost"], "42"},
		"annotation of both":    {built.Annotations["example.com/owner"], "ana"},
		"annotation of one":     {built.Annotations["example.com/page"], "7"},
		"selector":              {spec.NodeSelector, map[string]string{"pool": "big", "disk": "ssd"}},
		"service account":       {spec.ServiceAccountName, "reader"},
		"priority":              {spec.PriorityClassName, "batch"},
		"variable of both":      {env["MINE"], "yes"},
		"variable of one":       {env["RAY_memory_usage_threshold"], "0.9"},
		"variables from":        {ray(t, built).EnvFrom, []corev1.EnvFromSource{secretEnv("default"), secretEnv("own")}},
		"first variable":        {ray(t, built).Env[0].Name, "RAY_memory_usage_threshold"},
		"pull secrets":          {spec.ImagePullSecrets, []corev1.LocalObjectReference{{Name: "both"}, {Name: "own"}, {Name: "registry"}}},
		"toleration of its own": {spec.Tolerations[0].Key, "own"},
		"toleration of theirs":  {spec.Tolerations[1].Key, "default"},
		"no more tolerations":   {len(spec.Tolerations), 4},
		"the sidecar's own":     {len(spec.Containers[0].Env) + len(spec.Containers[0].EnvFrom), 0},
	} {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			t.Errorf("%s: %v, want %v", what, pair[0], pair[1])
		}
	}
	if account := pod.Head(defaulted(), 1).Spec.ServiceAccountName; account != "default-account" {
		t.Errorf("the head's account is %q", account)
	}
}

// TestLabelsOfOursWin: podDefaults and templates cannot pass a pod off as another's.
func TestLabelsOfOursWin(t *testing.T) {
	cluster := defaulted()
	cluster.Spec.PodDefaults.Labels[v1beta1.LabelCluster] = "other"
	cluster.Spec.WorkerGroups[0].Template.Labels[v1beta1.LabelRole] = v1beta1.RoleHead
	if built := worker(cluster); built.Labels[v1beta1.LabelCluster] != "demo" || built.Labels[v1beta1.LabelRole] != v1beta1.RoleWorker {
		t.Errorf("labels %v", built.Labels)
	}
}

// TestTolerations: 60 s on a node that is not ready or does not answer, each unless the
// user says something of it.
func TestTolerations(t *testing.T) {
	const notReady, unreachable = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
	for name, test := range map[string]struct {
		given corev1.Toleration
		added []string
	}{
		"nothing said":           {corev1.Toleration{Key: "other", Operator: corev1.TolerationOpExists}, []string{notReady, unreachable}},
		"one said":               {corev1.Toleration{Key: notReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}, []string{unreachable}},
		"the other said":         {corev1.Toleration{Key: unreachable, Operator: corev1.TolerationOpExists}, []string{notReady}},
		"another effect":         {corev1.Toleration{Key: notReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}, []string{notReady, unreachable}},
		"all taints":             {corev1.Toleration{Operator: corev1.TolerationOpExists}, nil},
		"all taints, one effect": {corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}, []string{notReady, unreachable}},
	} {
		t.Run(name, func(t *testing.T) {
			group := testkit.Group("g", 1)
			group.Template = testkit.Template()
			group.Template.Spec.Tolerations = []corev1.Toleration{test.given}
			have := worker(testkit.Cluster("demo", group)).Spec.Tolerations
			var added []string
			for _, toleration := range have[1:] {
				added = append(added, toleration.Key)
				if *toleration.TolerationSeconds != 60 || toleration.Effect != corev1.TaintEffectNoExecute || toleration.Operator != corev1.TolerationOpExists {
					t.Errorf("%+v", toleration)
				}
			}
			if !reflect.DeepEqual(have[0], test.given) || !slices.Equal(added, test.added) {
				t.Errorf("%+v, want %v added", have, test.added)
			}
		})
	}
}

func on() *bool       { yes := true; return &yes }
func off() *bool      { no := false; return &no }
func root() *int64    { zero := int64(0); return &zero }
func someone() *int64 { id := int64(1000); return &id }

// TestSecurity: "restricted" wherever the user says nothing else, and nothing else
// where they do.
func TestSecurity(t *testing.T) {
	all := &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}
	for name, test := range map[string]struct {
		pod        *corev1.PodSecurityContext
		given      *corev1.SecurityContext
		nonRoot    *bool // of the pod
		escalation *bool
		caps       *corev1.Capabilities
		own        *bool // runAsNonRoot of the container
	}{
		"nothing said":    {nonRoot: on(), escalation: off(), caps: all},
		"escalation":      {given: &corev1.SecurityContext{AllowPrivilegeEscalation: on()}, nonRoot: on(), escalation: on(), caps: all},
		"capabilities":    {given: &corev1.SecurityContext{Capabilities: caps("NET_ADMIN")}, nonRoot: on(), escalation: off(), caps: caps("NET_ADMIN")},
		"privileged":      {given: &corev1.SecurityContext{Privileged: on()}, nonRoot: on()},
		"not privileged":  {given: &corev1.SecurityContext{Privileged: off()}, nonRoot: on(), escalation: off(), caps: all},
		"administrator":   {given: &corev1.SecurityContext{Capabilities: caps("SYS_ADMIN")}, nonRoot: on(), caps: caps("SYS_ADMIN")},
		"by its other":    {given: &corev1.SecurityContext{Capabilities: caps("CAP_SYS_ADMIN")}, nonRoot: on(), caps: caps("CAP_SYS_ADMIN")},
		"container, root": {given: &corev1.SecurityContext{RunAsUser: root()}, nonRoot: on(), escalation: off(), caps: all, own: off()},
		"someone":         {given: &corev1.SecurityContext{RunAsUser: someone()}, nonRoot: on(), escalation: off(), caps: all},
		"root, contradicted": {
			given: &corev1.SecurityContext{RunAsUser: root(), RunAsNonRoot: on()}, nonRoot: on(), escalation: off(), caps: all, own: on(),
		},
		"pod, root":    {pod: &corev1.PodSecurityContext{RunAsUser: root()}, escalation: off(), caps: all},
		"pod, someone": {pod: &corev1.PodSecurityContext{RunAsUser: someone()}, nonRoot: on(), escalation: off(), caps: all},
		"pod, either":  {pod: &corev1.PodSecurityContext{RunAsNonRoot: off()}, nonRoot: off(), escalation: off(), caps: all},
		"pod, said": {
			pod: &corev1.PodSecurityContext{RunAsNonRoot: on()}, given: &corev1.SecurityContext{RunAsUser: root()}, nonRoot: on(), escalation: off(), caps: all,
		},
	} {
		t.Run(name, func(t *testing.T) {
			group := testkit.Group("g", 1)
			group.Template = testkit.Template(corev1.Container{Name: "side", SecurityContext: test.given}, corev1.Container{Name: "ray"})
			always := corev1.ContainerRestartPolicyAlways
			group.Template.Spec.InitContainers = []corev1.Container{
				{Name: "init", SecurityContext: test.given}, {Name: "native", RestartPolicy: &always, SecurityContext: test.given},
			}
			group.Template.Spec.SecurityContext = test.pod
			spec := worker(testkit.Cluster("demo", group)).Spec
			if *spec.AutomountServiceAccountToken || spec.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
				t.Errorf("the pod: %+v", spec.SecurityContext)
			}
			if !reflect.DeepEqual(spec.SecurityContext.RunAsNonRoot, test.nonRoot) {
				t.Errorf("the pod's runAsNonRoot: %+v", spec.SecurityContext)
			}
			for _, container := range []corev1.Container{spec.InitContainers[0], spec.InitContainers[1], spec.Containers[0]} {
				have := container.SecurityContext
				if !reflect.DeepEqual(have.AllowPrivilegeEscalation, test.escalation) || !reflect.DeepEqual(have.Capabilities, test.caps) ||
					!reflect.DeepEqual(have.RunAsNonRoot, test.own) {
					t.Errorf("%s: %+v", container.Name, have)
				}
			}
			if have := spec.Containers[1].SecurityContext; *have.AllowPrivilegeEscalation || !reflect.DeepEqual(have.Capabilities, all) {
				t.Errorf("ray: %+v", have)
			}
		})
	}
}

func caps(added corev1.Capability) *corev1.Capabilities {
	return &corev1.Capabilities{Add: []corev1.Capability{added}}
}

// TestSecurityIsKept: what the user says of the pod as a whole stands.
func TestSecurityIsKept(t *testing.T) {
	group := testkit.Group("g", 1)
	group.Template = testkit.Template()
	group.Template.Spec.AutomountServiceAccountToken = on()
	group.Template.Spec.SecurityContext = &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}}
	spec := worker(testkit.Cluster("demo", group)).Spec
	if !*spec.AutomountServiceAccountToken || spec.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeUnconfined {
		t.Errorf("%+v", spec)
	}
}

// TestOtherContainers: init containers, native sidecars and sidecars keep their order,
// images and commands, and leave their last words where they do not say otherwise.
func TestOtherContainers(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	group := testkit.Group("g", 1)
	group.Template = testkit.Template(corev1.Container{Name: "side", Image: "side:1", TerminationMessagePolicy: corev1.TerminationMessageReadFile}, corev1.Container{Name: "late", Image: "late:1"})
	group.Template.Spec.InitContainers = []corev1.Container{
		{Name: "native", Image: "native:1", RestartPolicy: &always, Args: []string{"$(X)"}}, {Name: "init", Image: "init:1"},
	}
	spec := worker(testkit.Cluster("demo", group)).Spec
	var have []string
	for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
		have = append(have, container.Name+" "+container.Image+" "+string(container.TerminationMessagePolicy))
	}
	want := []string{
		"native native:1 FallbackToLogsOnError", "init init:1 FallbackToLogsOnError",
		"ray rayproject/ray:2.60.0 FallbackToLogsOnError", "side side:1 File", "late late:1 FallbackToLogsOnError",
	}
	if !slices.Equal(have, want) || *spec.InitContainers[0].RestartPolicy != always || spec.InitContainers[0].Args[0] != "$(X)" {
		t.Errorf("%q, want %q", have, want)
	}
}
