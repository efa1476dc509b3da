package pod

import (
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// History is what an installation with an archive keeps of clusters.
type History struct {
	// Archivers are the addresses of the archiver's replicas, each host:port, and Authority is the certificate, in PEM, of
	// the authority that signs theirs.
	Archivers []string
	Authority string
	// Redact are expressions (RE2) whose matches the collector replaces.
	Redact []string
	// MaxKeepFor is the longest that a cluster may ask for; 0 is no bound.
	MaxKeepFor metav1.Duration
	// Keep, KeepFor and Size lie under the same fields of a cluster's history.
	Keep    v1beta1.HistoryKeep
	KeepFor metav1.Duration
	Size    corev1.ResourceList
}

// collectorSize is the default size of the collector's container: it takes 12 MiB with 200 files, and 32 MiB at 10 MB/s.
var collectorSize = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi")}

const (
	// historyAudience is whom the collector's token is for. The API server refuses a token with it.
	historyAudience = "history.heliostat.dev"
	tokenSeconds    = 3600
	fileOfToken     = "token"
	// rotationBytes is the size at which Ray rotates a file. Without the variable the outputs of workers grow without bound.
	rotationVariable, rotationBytes = "RAY_ROTATION_MAX_BYTES", "268435456"
	// Variables of the collector.
	variableAuthority, variableRedact = "HELIOSTAT_HISTORY_AUTHORITY", "HELIOSTAT_HISTORY_REDACT"
)

// Under returns a cluster whose history lies over that of its installation. Without an installed archive the result has none.
func (h *History) Under(cluster *v1beta1.ComputeCluster) *v1beta1.ComputeCluster {
	if h == nil && cluster.Spec.History == nil {
		return cluster
	}
	laid := *cluster
	if h == nil {
		laid.Spec.History = nil
		return &laid
	}
	own := ptr.Deref(cluster.Spec.History, v1beta1.History{})
	fill(&own.Keep, h.Keep)
	fillPointer(&own.KeepFor, h.KeepFor)
	own.Size = Over(h.Size, own.Size)
	if h.Authority == "" { // for a moment after the operator has begun: a collector could not tell archivers from others
		own.Keep = v1beta1.HistoryRecords
	}
	laid.Spec.History = &own
	return &laid
}

// HasCollector reports whether a pod was made with a collector.
func HasCollector(made *corev1.Pod) bool {
	return slices.ContainsFunc(made.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == v1beta1.ContainerHistory })
}

// session prepares a pod for the collector where outputs are kept: the directory of Ray's sessions is a volume, and the pod has a
// token for the archive. A template that gives the directory a volume of the pod's own keeps it. A pod whose volume others share
// gets no collector, as it would send their files too, nor does one whose containers see each other's processes.
func session(d *draft) {
	if !d.isCollected() {
		return
	}
	if d.sessionMount() == nil {
		d.pod.Spec.Volumes = append(d.pod.Spec.Volumes, corev1.Volume{
			Name: naming.VolumeSession, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}},
		})
		d.ray.VolumeMounts = append(d.ray.VolumeMounts, corev1.VolumeMount{Name: naming.VolumeSession, MountPath: d.sessionPath()})
	}
	d.pod.Spec.Volumes = append(d.pod.Spec.Volumes, corev1.Volume{Name: naming.VolumeHistory, VolumeSource: corev1.VolumeSource{
		Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
			Audience: historyAudience, ExpirationSeconds: new(int64(tokenSeconds)), Path: fileOfToken,
		}}}},
	}})
	d.offer(rotationVariable, rotationBytes)
}

// isCollected reports whether a collector sends the pod's files.
func (d *draft) isCollected() bool {
	history := d.cluster.Spec.History
	if history == nil || history.Keep != v1beta1.HistoryOutputs || ptr.Deref(d.pod.Spec.ShareProcessNamespace, false) || d.pod.Spec.HostPID {
		return false
	}
	if slices.ContainsFunc(d.cluster.Spec.SharedVolumes, func(v v1beta1.SharedVolume) bool { return isWithin(d.sessionPath(), v.MountPath) }) {
		return false
	}
	mount := d.sessionMount()
	return mount == nil || mount.SubPathExpr == "" && d.isOwn(mount.Name)
}

// sessionPath returns the directory of Ray's sessions.
func (d *draft) sessionPath() string {
	if given := d.node.RayStartParams["temp-dir"]; given != "" {
		return given
	}
	return naming.PathSession
}

// sessionMount returns the mount of the Ray container that has the directory of Ray's sessions, nil where it is in no volume.
func (d *draft) sessionMount() *corev1.VolumeMount {
	var found *corev1.VolumeMount
	for i := range d.ray.VolumeMounts {
		mount := &d.ray.VolumeMounts[i]
		if isWithin(d.sessionPath(), mount.MountPath) && (found == nil || len(mount.MountPath) > len(found.MountPath)) {
			found = mount
		}
	}
	return found
}

// isOwn reports whether a volume is of this pod alone.
func (d *draft) isOwn(volume string) bool {
	if d.group != nil && slices.ContainsFunc(d.group.VolumeClaimTemplates, func(c corev1.PersistentVolumeClaim) bool { return c.Name == volume }) {
		return true
	}
	return slices.ContainsFunc(d.pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.Name == volume && (v.EmptyDir != nil || v.Ephemeral != nil)
	})
}

// isWithin reports whether a path is a directory or below it.
func isWithin(path, directory string) bool {
	directory = strings.TrimRight(directory, "/") + "/"
	return strings.HasPrefix(strings.TrimRight(path, "/")+"/", directory)
}

// AddCollector adds the collector to a pod that Head or Worker built for it, and returns the pod. It is the last of the init
// containers: as a native sidecar it begins before Ray and ends after it, and those of the template end before it begins.
func (o OperatorImage) AddCollector(made *corev1.Pod, cluster *v1beta1.ComputeCluster, history *History) *corev1.Pod {
	isPrepared := slices.ContainsFunc(made.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == naming.VolumeHistory })
	if history == nil || !isPrepared {
		return made
	}
	d := &draft{cluster: cluster, node: &cluster.Spec.Head.NodeSpec, pod: made, ray: rayContainer(&made.Spec)}
	if group := naming.FindGroup(cluster, made.Labels[v1beta1.LabelGroup]); group != nil {
		d.node, d.group = &group.NodeSpec, group
	}
	made.Spec.InitContainers = append(made.Spec.InitContainers, o.collector(d, history))
	return made
}

// collector returns the container that sends Ray's files to the archive. It sees them read-only, and of credentials its own
// token and the cluster's, which it replaces in what it sends.
func (o OperatorImage) collector(d *draft, history *History) corev1.Container {
	container := o.container(v1beta1.ContainerHistory, Over(collectorSize, d.cluster.Spec.History.Size), restricted(d.pod.Spec.SecurityContext))
	container.Command = []string{"/collector"}
	container.Args = []string{
		"--directory=" + literal(d.sessionPath()), "--archivers=" + strings.Join(history.Archivers, ","), "--cluster=" + string(d.cluster.UID),
		"--token-file=" + naming.PathHistory + "/" + fileOfToken,
	}
	container.Env = []corev1.EnvVar{{Name: variableAuthority, Value: literal(history.Authority)}}
	if len(history.Redact) > 0 {
		text, _ := json.Marshal(history.Redact) // strings always marshal
		container.Env = append(container.Env, corev1.EnvVar{Name: variableRedact, Value: literal(string(text))})
	}
	container.VolumeMounts = []corev1.VolumeMount{{Name: naming.VolumeHistory, MountPath: naming.PathHistory, ReadOnly: true}}
	if mount := d.sessionMount(); mount != nil {
		files := *mount.DeepCopy()
		files.ReadOnly = true
		container.VolumeMounts = append(container.VolumeMounts, files)
	}
	if TokenRequired(d.cluster) {
		container.Args = append(container.Args, "--redact-file="+pathTokenFile)
		container.VolumeMounts = append(container.VolumeMounts, tokenMount())
	}
	container.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	return container
}

// keepLogs returns the part of the start script that keeps of the session before this one its logs, which the collector may still
// have to send, and removes what older sessions left. Sessions survive a restart of the container in their volume, and can have GB.
// Names of sessions begin with their time. A link that stands in place of a directory is removed and not followed.
func keepLogs(path string) string {
	return `l=; for s in ` + literal(quoted(path)) + `/session_[0-9]*; do [ -d "$s" ] && [ ! -L "$s" ] || continue; [ -z "$l" ] || rm -rf "$l"; l=$s; done; ` +
		`[ -z "$l" ] || for f in "$l"/* "$l"/.[!.]*; do [ "$f" = "$l/logs" ] || rm -rf "$f"; done; `
}

// quoted returns a word as a shell takes it without a change.
func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }
