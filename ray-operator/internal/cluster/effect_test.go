package cluster_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/volume"
	"github.com/heliostat-dev/heliostat/ray-operator/validate"
)

type specEdit = func(*v1beta1.ComputeClusterSpec)

// effects has, for each field of the spec, an edit that sets it to something else.
var effects = map[string]specEdit{
	"maxConcurrentJobs": func(s *v1beta1.ComputeClusterSpec) { most := int32(2); s.MaxConcurrentJobs = &most },

	"rayVersion":      func(s *v1beta1.ComputeClusterSpec) { s.RayVersion = "2.59.0" },
	"image":           func(s *v1beta1.ComputeClusterSpec) { s.Image = "mine" },
	"imagePullPolicy": func(s *v1beta1.ComputeClusterSpec) { s.ImagePullPolicy = corev1.PullAlways },
	"suspend":         func(s *v1beta1.ComputeClusterSpec) { s.Suspend = new(true) },
	"managedBy":       func(s *v1beta1.ComputeClusterSpec) { s.ManagedBy = "kueue.x-k8s.io/multikueue" },

	"scheduler.name":          scheduledBy(func(p *v1beta1.Scheduler) { p.Name = v1beta1.SchedulerKAI }),
	"scheduler.queue":         scheduledBy(func(p *v1beta1.Scheduler) { p.Queue = "other" }),
	"scheduler.schedulerName": scheduledBy(func(p *v1beta1.Scheduler) { p.SchedulerName = "other" }),

	"podDefaults.serviceAccountName": defaults(func(d *v1beta1.PodDefaults) { d.ServiceAccountName = "a" }),
	"podDefaults.imagePullSecrets": defaults(func(d *v1beta1.PodDefaults) {
		d.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "a"}}
	}),
	"podDefaults.labels":      defaults(func(d *v1beta1.PodDefaults) { d.Labels = text("a") }),
	"podDefaults.annotations": defaults(func(d *v1beta1.PodDefaults) { d.Annotations = text("a") }),
	"podDefaults.env":         defaults(func(d *v1beta1.PodDefaults) { d.Env = []corev1.EnvVar{{Name: "A", Value: "b"}} }),
	"podDefaults.envFrom": defaults(func(d *v1beta1.PodDefaults) {
		d.EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "a"}}}}
	}),
	"podDefaults.nodeSelector":      defaults(func(d *v1beta1.PodDefaults) { d.NodeSelector = text("a") }),
	"podDefaults.tolerations":       defaults(func(d *v1beta1.PodDefaults) { d.Tolerations = []corev1.Toleration{{Key: "a"}} }),
	"podDefaults.priorityClassName": defaults(func(d *v1beta1.PodDefaults) { d.PriorityClassName = "a" }),

	"history.keep": func(s *v1beta1.ComputeClusterSpec) { s.History = &v1beta1.History{Keep: v1beta1.HistoryOutputs} },
	"history.keepFor": func(s *v1beta1.ComputeClusterSpec) {
		s.History = &v1beta1.History{KeepFor: &metav1.Duration{Duration: time.Hour}}
	},
	"history.size": func(s *v1beta1.ComputeClusterSpec) {
		s.History = &v1beta1.History{Size: testkit.Resources("memory", "64Mi")}
	},

	"head.size":                      func(s *v1beta1.ComputeClusterSpec) { s.Head.Size = testkit.Resources("cpu", "7") },
	"head.rayResources":              func(s *v1beta1.ComputeClusterSpec) { s.Head.RayResources = one("GPU") },
	"head.rayStartParams":            func(s *v1beta1.ComputeClusterSpec) { s.Head.RayStartParams = text("a") },
	"head.labels":                    func(s *v1beta1.ComputeClusterSpec) { s.Head.Labels = text("a") },
	"head.template":                  func(s *v1beta1.ComputeClusterSpec) { s.Head.Template = nodeNamed() },
	"head.service.type":              headService(func(h *v1beta1.HeadServiceSpec) { h.Type = corev1.ServiceTypeNodePort }),
	"head.service.headless":          headService(func(h *v1beta1.HeadServiceSpec) { h.Headless = new(true) }),
	"head.service.ports.nodePort":    headService(func(h *v1beta1.HeadServiceSpec) { h.Ports[0].NodePort = 30000 }),
	"head.service.loadBalancerClass": headService(func(h *v1beta1.HeadServiceSpec) { h.LoadBalancerClass = "a" }),
	"head.service.loadBalancerSourceRanges": headService(func(h *v1beta1.HeadServiceSpec) {
		h.LoadBalancerSourceRanges = []string{"10.0.0.0/8"}
	}),
	"head.service.externalTrafficPolicy": headService(func(h *v1beta1.HeadServiceSpec) {
		h.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	}),
	"head.service.sessionAffinity": headService(func(h *v1beta1.HeadServiceSpec) { h.SessionAffinity = corev1.ServiceAffinityClientIP }),
	"head.service.ipFamilies":      headService(func(h *v1beta1.HeadServiceSpec) { h.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol} }),
	"head.service.ipFamilyPolicy":  headService(func(h *v1beta1.HeadServiceSpec) { h.IPFamilyPolicy = corev1.IPFamilyPolicyPreferDualStack }),
	"head.service.labels":          headService(func(h *v1beta1.HeadServiceSpec) { h.Labels = text("a") }),
	"head.service.annotations":     headService(func(h *v1beta1.HeadServiceSpec) { h.Annotations = text("a") }),
	"head.service.ports.name":      headService(func(h *v1beta1.HeadServiceSpec) { h.Ports = []v1beta1.ServicePort{{Name: "b", Port: 7000}} }),
	"head.service.ports.port":      headService(func(h *v1beta1.HeadServiceSpec) { h.Ports = []v1beta1.ServicePort{{Name: "a", Port: 7001}} }),
	"head.service.ports.targetPort": headService(func(h *v1beta1.HeadServiceSpec) {
		h.Ports = []v1beta1.ServicePort{{Name: "a", Port: 7000, TargetPort: 7002}}
	}),
	"head.ingress.className":       ingress(func(i *v1beta1.IngressSpec) { i.ClassName = "a" }),
	"head.ingress.host":            ingress(func(i *v1beta1.IngressSpec) { i.Host = "b.example" }),
	"head.ingress.additionalHosts": ingress(func(i *v1beta1.IngressSpec) { i.AdditionalHosts = []string{"b.example"} }),
	"head.ingress.pathType":        ingress(func(i *v1beta1.IngressSpec) { i.PathType = networkingv1.PathTypeExact }),
	"head.ingress.annotations":     ingress(func(i *v1beta1.IngressSpec) { i.Annotations = text("a") }),
	"head.ingress.path":            ingress(func(i *v1beta1.IngressSpec) { i.Path = "/a" }),
	"head.ingress.tlsSecretName":   ingress(func(i *v1beta1.IngressSpec) { i.TLSSecretName = "a" }),

	"workerGroups.name":                   group(func(g *v1beta1.WorkerGroup) { g.Name = "other" }),
	"workerGroups.idleTimeoutSeconds":     group(func(g *v1beta1.WorkerGroup) { g.IdleTimeoutSeconds = number(7) }),
	"workerGroups.capacityTimeoutSeconds": group(func(g *v1beta1.WorkerGroup) { g.CapacityTimeoutSeconds = number(7) }),
	"workerGroups.priority":               group(func(g *v1beta1.WorkerGroup) { g.Priority = number(7) }),

	"autoscaling.idleTimeoutSeconds": func(s *v1beta1.ComputeClusterSpec) { s.Autoscaling.IdleTimeoutSeconds = number(7) },
	"autoscaling.pace":               func(s *v1beta1.ComputeClusterSpec) { s.Autoscaling.Pace = v1beta1.PaceConservative },
	"autoscaling.maxNodes":           func(s *v1beta1.ComputeClusterSpec) { s.Autoscaling.MaxNodes = number(7) },
	"autoscaling.size":               func(s *v1beta1.ComputeClusterSpec) { s.Autoscaling.Size = testkit.Resources("memory", "1Gi") },

	"autoscaling.image": func(s *v1beta1.ComputeClusterSpec) { s.Autoscaling.Image = "mine" },
	"autoscaling.env":   func(s *v1beta1.ComputeClusterSpec) { s.Autoscaling.Env = []corev1.EnvVar{{Name: "A"}} },
	"autoscaling.securityContext": func(s *v1beta1.ComputeClusterSpec) {
		s.Autoscaling.SecurityContext = &corev1.SecurityContext{RunAsUser: new(int64(7))}
	},

	"head.objectStoreMemory":         func(s *v1beta1.ComputeClusterSpec) { s.Head.ObjectStoreMemory = new(resource.MustParse("1Gi")) },
	"workerGroups.objectStoreMemory": group(func(g *v1beta1.WorkerGroup) { g.ObjectStoreMemory = new(resource.MustParse("1Gi")) }),

	"workerGroups.replicas":        group(func(g *v1beta1.WorkerGroup) { g.Replicas = new(int32) }),
	"workerGroups.minReplicas":     group(func(g *v1beta1.WorkerGroup) { g.MinReplicas = number(5) }),
	"workerGroups.maxReplicas":     group(func(g *v1beta1.WorkerGroup) { g.MaxReplicas = number(1) }),
	"workerGroups.hostsPerReplica": group(func(g *v1beta1.WorkerGroup) { g.HostsPerReplica = 2 }),
	"workerGroups.suspend":         group(func(g *v1beta1.WorkerGroup) { g.Suspend = new(true) }),
	"workerGroups.drainSeconds":    group(func(g *v1beta1.WorkerGroup) { g.DrainSeconds = number(7) }),
	"workerGroups.volumeClaimTemplates": group(func(g *v1beta1.WorkerGroup) {
		g.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claimTemplate("a")}
	}),
	"workerGroups.image":          group(func(g *v1beta1.WorkerGroup) { g.Image = "mine" }),
	"workerGroups.size":           group(func(g *v1beta1.WorkerGroup) { g.Size = testkit.Resources("cpu", "7") }),
	"workerGroups.rayResources":   group(func(g *v1beta1.WorkerGroup) { g.RayResources = one("GPU") }),
	"workerGroups.rayStartParams": group(func(g *v1beta1.WorkerGroup) { g.RayStartParams = text("a") }),
	"workerGroups.labels":         group(func(g *v1beta1.WorkerGroup) { g.Labels = text("a") }),
	"workerGroups.template":       group(func(g *v1beta1.WorkerGroup) { g.Template = nodeNamed() }),

	"sharedVolumes.name":                   shared(func(v *v1beta1.SharedVolume) { v.Name = "other" }),
	"sharedVolumes.mountPath":              shared(func(v *v1beta1.SharedVolume) { v.MountPath = "/other" }),
	"sharedVolumes.readOnly":               shared(func(v *v1beta1.SharedVolume) { v.ReadOnly = new(true) }),
	"sharedVolumes.claimName":              shared(func(v *v1beta1.SharedVolume) { v.Claim, v.ClaimName = nil, "mine" }),
	"sharedVolumes.claim.storage":          shared(func(v *v1beta1.SharedVolume) { v.Claim.Storage = new(resource.MustParse("2Gi")) }),
	"sharedVolumes.claim.storageClassName": shared(func(v *v1beta1.SharedVolume) { v.Claim.StorageClassName = new("nfs") }),
	"sharedVolumes.claim.retain":           shared(func(v *v1beta1.SharedVolume) { v.Claim.Retain = new(true) }),

	"authentication.mode": func(s *v1beta1.ComputeClusterSpec) {
		s.Authentication = &v1beta1.Authentication{Mode: v1beta1.AuthenticationDisabled}
		s.Head.Ingress = nil
	},
	"authentication.secretName": func(s *v1beta1.ComputeClusterSpec) { s.Authentication.SecretName = "a" },
	"network.isolation": func(s *v1beta1.ComputeClusterSpec) {
		s.Network = &v1beta1.Network{Isolation: v1beta1.Disabled}
	},
	"network.allowFrom.from": func(s *v1beta1.ComputeClusterSpec) {
		s.Network.AllowFrom[0].From = []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}}
	},
	"network.allowFrom.ports": func(s *v1beta1.ComputeClusterSpec) { s.Network.AllowFrom[0].Ports = []v1beta1.Port{v1beta1.PortGCS} },
	"network.allowTo.to": func(s *v1beta1.ComputeClusterSpec) {
		s.Network.AllowTo[0].To = []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}}
	},
	"network.allowTo.ports": func(s *v1beta1.ComputeClusterSpec) {
		s.Network.AllowTo[0].Ports = []networkingv1.NetworkPolicyPort{{}}
	},
	"network.cloudMetadata": func(s *v1beta1.ComputeClusterSpec) {
		s.Network.CloudMetadata = v1beta1.Enabled
	},
	"network.encryptionSize": func(s *v1beta1.ComputeClusterSpec) { s.Network.EncryptionSize = testkit.Resources("limits.cpu", "1") },

	"network.encryption": func(s *v1beta1.ComputeClusterSpec) { s.Network.Encryption = v1beta1.Enabled },

	"upgradeStrategy.type":                          strategy(v1beta1.ClusterUpgradeRecreate, nil),
	"upgradeStrategy.rollingWorkers.maxUnavailable": strategy(v1beta1.ClusterUpgradeRollingWorkers, &v1beta1.RollingWorkers{MaxUnavailable: new(intstr.FromInt32(2))}),
	"upgradeStrategy.rollingWorkers.maxSurge":       strategy(v1beta1.ClusterUpgradeRollingWorkers, &v1beta1.RollingWorkers{MaxUnavailable: new(intstr.FromInt32(1)), MaxSurge: new(intstr.FromInt32(1))}),
	"idlePolicy.afterSeconds":                       func(s *v1beta1.ComputeClusterSpec) { s.IdlePolicy.AfterSeconds = 60 },
	"idlePolicy.action":                             func(s *v1beta1.ComputeClusterSpec) { s.IdlePolicy.Action = v1beta1.IdleDelete },
}

func defaults(edit func(*v1beta1.PodDefaults)) specEdit {
	return func(s *v1beta1.ComputeClusterSpec) { edit(s.PodDefaults) }
}

func headService(edit func(*v1beta1.HeadServiceSpec)) specEdit {
	return func(s *v1beta1.ComputeClusterSpec) { edit(s.Head.Service) }
}

func ingress(edit func(*v1beta1.IngressSpec)) specEdit {
	return func(s *v1beta1.ComputeClusterSpec) { edit(s.Head.Ingress) }
}

func group(edit func(*v1beta1.WorkerGroup)) specEdit {
	return func(s *v1beta1.ComputeClusterSpec) { edit(&s.WorkerGroups[0]) }
}

func shared(edit func(*v1beta1.SharedVolume)) specEdit {
	return func(s *v1beta1.ComputeClusterSpec) { edit(&s.SharedVolumes[0]) }
}

func strategy(kind v1beta1.ClusterUpgradeType, rolling *v1beta1.RollingWorkers) specEdit {
	return func(s *v1beta1.ComputeClusterSpec) {
		s.UpgradeStrategy = &v1beta1.ClusterUpgradeStrategy{Type: kind, RollingWorkers: rolling}
	}
}

// scheduledBy edits a scheduler that the cluster has.
func scheduledBy(edit func(*v1beta1.Scheduler)) specEdit {
	return func(s *v1beta1.ComputeClusterSpec) { edit(s.Scheduler) }
}

func number(n int32) *int32 { return &n }

func claimTemplate(name string) corev1.PersistentVolumeClaim {
	claim := corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: testkit.Resources("storage", "1Gi")},
	}}
	claim.Name = name
	return claim
}

// opened is demo with something in each part of the spec that may be left out.
func opened() *v1beta1.ComputeCluster {
	of := demo()
	of.Spec.PodDefaults = &v1beta1.PodDefaults{}
	of.Spec.Head.Service = &v1beta1.HeadServiceSpec{
		Type: corev1.ServiceTypeLoadBalancer, Ports: []v1beta1.ServicePort{{Name: "a", Port: 7000}},
	}
	of.Spec.Head.Ingress = &v1beta1.IngressSpec{Host: "a.example"}
	of.Spec.Authentication = &v1beta1.Authentication{Mode: v1beta1.AuthenticationToken}
	of.Spec.Network = &v1beta1.Network{
		Isolation: v1beta1.Enabled,
		AllowFrom: []v1beta1.IngressRule{{From: []networkingv1.NetworkPolicyPeer{}, Ports: []v1beta1.Port{v1beta1.PortServe}}},
		AllowTo:   []v1beta1.EgressRule{{To: []networkingv1.NetworkPolicyPeer{}}},
	}
	of.Spec.UpgradeStrategy = &v1beta1.ClusterUpgradeStrategy{
		Type: v1beta1.ClusterUpgradeRollingWorkers, RollingWorkers: &v1beta1.RollingWorkers{MaxUnavailable: new(intstr.FromInt32(1))},
	}
	of.Spec.IdlePolicy = &v1beta1.IdlePolicy{AfterSeconds: 3600, Action: v1beta1.IdleSuspend}
	of.Spec.SharedVolumes = []v1beta1.SharedVolume{{Name: "data", MountPath: "/data", Claim: &v1beta1.SharedVolumeClaim{Storage: new(resource.MustParse("1Gi"))}}}
	return of
}

func one(name string) map[string]resource.Quantity {
	return map[string]resource.Quantity{name: resource.MustParse("1")}
}

func text(name string) map[string]string { return map[string]string{name: "b"} }

func nodeNamed() *corev1.PodTemplateSpec {
	template := testkit.Template()
	template.Spec.NodeName = "here"
	return template
}

// elsewhere are fields that have their effect, and the test of it, in the packages job and sweep. They must make no pod
// outdated.
var elsewhere = []string{"maxConcurrentJobs", "controlStore.redis.tls.serverName"}

// ofScaling are fields of groups that count beside autoscaling.
var ofScaling = []string{"workerGroups.idleTimeoutSeconds", "workerGroups.capacityTimeoutSeconds", "workerGroups.priority"}

// TestEveryFieldHasAnEffect walks the schema: a field without a row fails, and so does
// one whose edit changes nothing that the operator does or refuses, beyond the intent's
// hash.
func TestEveryFieldHasAnEffect(t *testing.T) {
	fields := leaves(reflect.TypeFor[v1beta1.ComputeClusterSpec](), "")
	effects := maps.Clone(effects)
	maps.Copy(effects, storeEffects)
	for _, path := range fields {
		edit, ok := effects[path]
		if !ok {
			t.Errorf("field %s has no row", path)
			continue
		}
		of := opened()
		of.Spec.ControlStore = storeFor(path)
		if slices.Contains(ofScaling, path) || strings.HasPrefix(path, "autoscaling.") {
			of.Spec.Autoscaling, of.Spec.WorkerGroups[0].MaxReplicas = &v1beta1.Autoscaling{}, number(9)
		}
		if path == "network.encryptionSize" {
			of.Spec.Network.Encryption = v1beta1.Enabled
		}
		if strings.HasPrefix(path, "scheduler.") {
			of.Spec.Scheduler = &v1beta1.Scheduler{Name: v1beta1.SchedulerVolcano}
		}
		before, intent := done(of), pod.Intent(of, "cpu")
		edit(&of.Spec)
		switch same := reflect.DeepEqual(before, done(of)); {
		case slices.Contains(elsewhere, path) && !(same && pod.Intent(of, "cpu") == intent):
			t.Errorf("field %s has its effect elsewhere and one on the cluster", path)
		case !slices.Contains(elsewhere, path) && same:
			t.Errorf("field %s has no effect", path)
		}
	}
	for path := range effects {
		if !slices.Contains(fields, path) {
			t.Errorf("row %s is about no field", path)
		}
	}
}

// leaves are the paths of the fields that hold values, by their JSON names. Maps and
// Kubernetes' own types are values.
func leaves(of reflect.Type, path string) []string {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || of.PkgPath() != reflect.TypeFor[v1beta1.ComputeCluster]().PkgPath() {
		return []string{path}
	}
	var all []string
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		under := path
		if name != "" {
			under = strings.TrimPrefix(path+"."+name, ".")
		}
		all = append(all, leaves(of.Field(i).Type, under)...)
	}
	return all
}

// volumesOf are the shared volumes of a cluster, of which nothing is there but the claims of users.
func volumesOf(of *v1beta1.ComputeCluster) []volume.Seen {
	var all []volume.Seen
	for i := range of.Spec.SharedVolumes {
		one := volume.Seen{Volume: &of.Spec.SharedVolumes[i], Wanted: desired.SharedClaim(of, &of.Spec.SharedVolumes[i])}
		if one.Wanted == nil {
			one.Found = mine(corev1.ClaimBound, corev1.ReadWriteMany)
		}
		all = append(all, one)
	}
	return all
}

// done is what the operator does about a cluster, or has against it: what its first pass
// makes, and how it goes on with one whose workers are old, idle and too many.
func done(of *v1beta1.ComputeCluster) []any {
	known := cluster.GangSeen{Version: "v1beta1"} // where there is a scheduler
	first := decide(of, cluster.Seen{Record: cluster.Record{Version: 1, Epoch: 1}, Store: serving(), Gang: known, Volumes: volumesOf(of)})
	pods := []*corev1.Pod{first.Head}
	var claims []*corev1.PersistentVolumeClaim
	for _, filling := range first.Create {
		pods, claims = append(pods, filling.Pods...), append(claims, filling.Claims...)
	}
	for _, pod := range pods {
		if pod != nil {
			delete(pod.Annotations, v1beta1.AnnotationIntent)
		}
	}
	later := given(1, func(s *cluster.Seen) {
		s.Gang = known
		s.Pods[0].Annotations[v1beta1.AnnotationIntent] = pod.Intent(of, "")
		s.Pods[0].Spec.InitContainers = []corev1.Container{{Name: v1beta1.ContainerAutoscaler}}
		for _, worker := range s.Pods[1:] {
			old(worker.Pod)
		}
		s.Ray = cluster.Ray{At: now, UseAt: now, IdleSince: now.Add(-10 * time.Minute)}
	})
	next := decide(of, later)
	told := cluster.Status(of, later, next, cluster.Outcome{}, now).Conditions
	return []any{pods, claims, first.Volume, first.VolumeClaims, first.Store, first.Fixtures, first.Token, validate.Cluster(of), cluster.IsManaged(of), gist(next), next.Snapshot, told}
}
