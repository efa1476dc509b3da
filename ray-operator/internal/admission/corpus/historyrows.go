package corpus

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// keeping has a cluster's outputs, or its records alone, kept.
func keeping(keep v1beta1.HistoryKeep) edit {
	return spec(func(s *v1beta1.ComputeClusterSpec) { s.History = &v1beta1.History{Keep: keep} })
}

func keepFor(age time.Duration) edit {
	return spec(func(s *v1beta1.ComputeClusterSpec) {
		s.History = &v1beta1.History{KeepFor: &metav1.Duration{Duration: age}}
	})
}

func collectorSize(pairs ...string) edit {
	return spec(func(s *v1beta1.ComputeClusterSpec) { s.History = &v1beta1.History{Size: resources(pairs...)} })
}

// sessionsOn has a worker's Ray container mount a volume of a source at a path, and its outputs kept.
func sessionsOn(source corev1.VolumeSource, paths ...string) edit {
	return both(keeping(v1beta1.HistoryOutputs), inPod(func(p *corev1.PodSpec) {
		p.Volumes = []corev1.Volume{{Name: "mine", VolumeSource: source}, {Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	}), inRay(func(c *container) {
		for i, path := range paths {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: []string{"mine", "scratch"}[i], MountPath: path})
		}
	}))
}

var (
	ofThePod = corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	ofMany   = corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "all"}}
)

var historyRows = []row{
	{Name: "history of outputs", Edit: keeping(v1beta1.HistoryOutputs)},
	{Name: "history of records", Edit: keeping(v1beta1.HistoryRecords)},
	{Name: "history of something", Rule: "unknown-word", Edit: keeping("Everything")},
	{Name: "history for an hour", Edit: keepFor(time.Hour)},
	{Name: "history for less than an hour", Rule: "history-keep-for", Edit: keepFor(time.Hour - time.Second)},
	{Name: "history with a size", Edit: collectorSize("cpu", "10m", "limits.cpu", "1", "memory", "32Mi")},
	{Name: "history with a GPU", Rule: "history-size-name", Edit: collectorSize("nvidia.com/gpu", "1")},
	{Name: "history with little memory", Rule: "history-size", Edit: collectorSize("memory", "31Mi")},
	{Name: "history with a limit below cpu", Rule: "history-size-limit", Edit: collectorSize("cpu", "2", "limits.cpu", "1")},
	{Name: "a container of the collector's name", Rule: "history-container", Edit: headInit(v1beta1.ContainerHistory)},
	{Name: "a mount of the collector's token", Rule: "history-mount", Edit: mounting(naming.VolumeHistory, true)},
	{Name: "a volume of the collector's name", Rule: "template-volume", Edit: inPod(func(p *corev1.PodSpec) {
		p.Volumes = []corev1.Volume{{Name: naming.VolumeSession, VolumeSource: ofThePod}}
	})},
	{Name: "sessions on a volume of the pod", Edit: sessionsOn(ofThePod, "/tmp/ray")},
	{Name: "sessions below a volume of the pod", Edit: sessionsOn(ofThePod, "/tmp/")},
	{Name: "sessions beside a volume of many pods", Edit: sessionsOn(ofMany, "/tmp/ray-data")},
	{Name: "sessions on a volume of many pods", Rule: "history-shared", Edit: sessionsOn(ofMany, "/tmp/ray/")},
	{Name: "sessions below a volume of many pods", Rule: "history-shared", Edit: sessionsOn(ofMany, "/tmp")},
	{Name: "sessions on a volume of the pod below one of many", Edit: sessionsOn(ofMany, "/tmp", "/tmp/ray")},
	{Name: "sessions with temp-dir on a volume of many pods", Rule: "history-shared", Edit: both(sessionsOn(ofMany, "/scratch"), option("temp-dir", "/scratch/ray"))},
	{Name: "records of sessions on a volume of many pods", Edit: both(sessionsOn(ofMany, "/tmp/ray"), keeping(v1beta1.HistoryRecords))},
	{Name: "sessions on a shared volume", Rule: "history-shared-volume", Edit: both(keeping(v1beta1.HistoryOutputs), mountedAt("/scratch"), option("temp-dir", "/scratch/ray"))},
	{Name: "sessions beside a shared volume", Edit: both(keeping(v1beta1.HistoryOutputs), mountedAt("/scratch"), option("temp-dir", "/scratch-of-mine"))},
}
