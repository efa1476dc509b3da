package corpus

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

type sharedVolume = v1beta1.SharedVolume

// sharing gives a cluster shared volumes: each of a claim of the user's, and in a place of its own, but for what the edit says.
func sharing(edits ...func(*sharedVolume)) edit {
	return spec(func(s *v1beta1.ComputeClusterSpec) {
		s.SharedVolumes = nil
		for i, change := range edits {
			one := sharedVolume{Name: fmt.Sprint("v", i), MountPath: fmt.Sprint("/v", i), ClaimName: fmt.Sprint("mine", i)}
			change(&one)
			s.SharedVolumes = append(s.SharedVolumes, one)
		}
	})
}

func asGiven(*sharedVolume) {}

func mountedAt(path string) edit { return sharing(func(v *sharedVolume) { v.MountPath = path }) }

func sharedName(name string) edit { return sharing(func(v *sharedVolume) { v.Name = name }) }

func sharedFrom(claim string) edit { return sharing(func(v *sharedVolume) { v.ClaimName = claim }) }

// claimed is a shared volume whose claim the operator makes.
func claimed(storage, class *string, changes ...func(*sharedVolume)) func(*sharedVolume) {
	return func(v *sharedVolume) {
		v.ClaimName, v.Claim = "", &v1beta1.SharedVolumeClaim{Storage: amount(storage), StorageClassName: class}
		both(changes...)(v)
	}
}

func sharedOf(storage, class *string) edit { return sharing(claimed(storage, class)) }

// mountsAt has the Ray container of the first group mount an emptyDir of a name beside the shared volume.
func mountsAt(name, path string) edit {
	return both(mountedAt("/data"), inPod(func(p *corev1.PodSpec) {
		p.Volumes = []corev1.Volume{{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	}), inRay(func(c *container) { c.VolumeMounts = []corev1.VolumeMount{{Name: name, MountPath: path}} }))
}

func claimNamed(name string) corev1.VolumeSource {
	return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}
}

func manyShared(n int) edit {
	edits := make([]func(*sharedVolume), n)
	for i := range edits {
		edits[i] = asGiven
	}
	return sharing(edits...)
}

var sharedVolumeRows = []row{
	{Name: "a shared volume", Edit: sharing(asGiven)},
	{Name: "a shared volume of which all is said", Edit: sharing(claimed(ptr("10Gi"), ptr("nfs.fast"), func(v *sharedVolume) { v.Claim.Retain = new(true) }))},
	{Name: "a shared volume of no class", Edit: sharedOf(ptr("1"), ptr(""))},
	{Name: "a shared volume to read", Edit: sharing(func(v *sharedVolume) { v.ReadOnly = new(true) })},
	{Name: "eight shared volumes", Edit: manyShared(8)},
	{Name: "nine shared volumes", Rule: "long-list", Edit: manyShared(9)},
	{Name: "a shared volume without a claim", Rule: "shared-volume-claim", Edit: sharedFrom("")},
	{Name: "a shared volume of two claims", Rule: "shared-volume-claim", Edit: sharing(claimed(ptr("1Gi"), nil, func(v *sharedVolume) { v.ClaimName = "mine" }))},
	{Name: "a new shared volume to read", Rule: "shared-volume-read-only", Edit: sharing(claimed(ptr("1Gi"), nil, func(v *sharedVolume) { v.ReadOnly = new(true) }))},
	{Name: "a new shared volume that is not for reading alone", Edit: sharing(claimed(ptr("1Gi"), nil, func(v *sharedVolume) { v.ReadOnly = new(false) }))},
	{Name: "a shared volume's name", Rule: "shared-volume-name", Edit: sharedName("Data")},
	{Name: "a shared volume's name with a dash at its end", Rule: "shared-volume-name", Edit: sharedName("data-")},
	{Name: "a shared volume's name of 40", Edit: sharedName(long(40))},
	{Name: "a shared volume's name of 41", Rule: "long-text", Edit: sharedName(long(41))},
	{Name: "a shared volume without a name", Rule: "required", Edit: sharedName("")},
	{Name: "a shared volume twice", Rule: "duplicate", Edit: sharing(asGiven, func(v *sharedVolume) { v.Name = "v0" })},
	{Name: "a shared volume's claim by a bad name", Rule: "object-name", Edit: sharedFrom("Mine")},
	{Name: "a shared volume's claim by a long name", Rule: "long-text", Edit: sharedFrom(long(254))},
	{Name: "a shared volume of nothing", Rule: "shared-volume-storage", Edit: sharedOf(ptr("0"), nil)},
	{Name: "a shared volume of less", Rule: "shared-volume-storage", Edit: sharedOf(ptr("-1"), nil)},
	{Name: "a shared volume of no size", Rule: "required", Edit: sharedOf(nil, nil)},
	{Name: "a shared volume's class", Rule: "object-name", Edit: sharedOf(ptr("1Gi"), ptr("a_b"))},
	{Name: "a shared volume's class too long", Rule: "long-text", Edit: sharedOf(ptr("1Gi"), ptr(long(254)))},

	{Name: "a shared volume in a directory", Edit: mountedAt("/mnt/data.v1/a b")},
	{Name: "a shared volume in Ray's home", Edit: mountedAt("/home/ray/data")},
	{Name: "a shared volume beside Ray's files", Edit: mountedAt("/tmp/raydata")},
	{Name: "a shared volume nowhere", Rule: "required", Edit: mountedAt("")},
	{Name: "a shared volume at a place too long", Rule: "long-text", Edit: mountedAt("/" + long(512))},
	{Name: "a shared volume at the root", Rule: "shared-volume-path", Edit: mountedAt("/")},
	{Name: "a shared volume at a place from here", Rule: "shared-volume-path", Edit: mountedAt("data")},
	{Name: "a shared volume at a place with a slash", Rule: "shared-volume-path", Edit: mountedAt("/data/")},
	{Name: "a shared volume at a place with two slashes", Rule: "shared-volume-path", Edit: mountedAt("/mnt//data")},
	{Name: "a shared volume at a place upwards", Rule: "shared-volume-path", Edit: mountedAt("/mnt/../data")},
	{Name: "a shared volume at a place with a dot", Rule: "shared-volume-path", Edit: mountedAt("/mnt/.")},
	{Name: "a shared volume in a hidden directory", Edit: mountedAt("/mnt/..data")},
	{Name: "a shared volume at a place with a colon", Rule: "shared-volume-path", Edit: mountedAt("/mnt:data")},
	{Name: "a shared volume at Ray's files", Rule: "shared-volume-path-own", Edit: mountedAt("/tmp/ray")},
	{Name: "a shared volume in Ray's files", Rule: "shared-volume-path-own", Edit: mountedAt("/tmp/ray/session")},
	{Name: "a shared volume above Ray's files", Rule: "shared-volume-path-own", Edit: mountedAt("/tmp")},
	{Name: "a shared volume at a gang's locks", Rule: "shared-volume-path-own", Edit: mountedAt("/tmp/heliostat-gang-ports")},
	{Name: "a shared volume at shared memory", Rule: "shared-volume-path-own", Edit: mountedAt("/dev/shm")},
	{Name: "a shared volume at the token", Rule: "shared-volume-path-own", Edit: mountedAt("/var/run/secrets/heliostat.dev/token")},
	{Name: "a shared volume at the account", Rule: "shared-volume-path-own", Edit: mountedAt("/run/secrets")},
	{Name: "a shared volume at the store", Rule: "shared-volume-path-own", Edit: mountedAt("/var/lib/heliostat/store")},
	{Name: "a shared volume at Ray's home", Rule: "shared-volume-path-own", Edit: mountedAt("/home/ray")},
	{Name: "a shared volume at the system's programs", Rule: "shared-volume-path-own", Edit: mountedAt("/usr")},
	{Name: "a shared volume in the system's programs", Rule: "shared-volume-path-own", Edit: mountedAt("/usr/local/bin")},
	{Name: "a shared volume at Python", Rule: "shared-volume-path-own", Edit: mountedAt("/home/ray/anaconda3/lib")},
	{Name: "a shared volume beside Python", Edit: mountedAt("/home/ray/anaconda3-data")},
	{Name: "a shared volume at a place with a new line", Rule: "shared-volume-path", Edit: mountedAt("/data\nb")},
	{Name: "a shared volume at a place with a tab", Rule: "shared-volume-path", Edit: mountedAt("/data\tb")},
	{Name: "two shared volumes in one place", Rule: "shared-volume-path-twice", Edit: sharing(asGiven, func(v *sharedVolume) { v.MountPath = "/v0" })},
	{Name: "a shared volume in another", Edit: sharing(asGiven, func(v *sharedVolume) { v.MountPath = "/v0/in" })},

	{Name: "two shared volumes of one claim", Rule: "shared-volume-claim-twice", Edit: sharing(asGiven, func(v *sharedVolume) { v.ClaimName = "mine0" })},
	{Name: "a volume of a shared volume's claim", Rule: "shared-volume-claim-again", Edit: both(sharing(asGiven), volume(claimNamed("mine0")))},
	{Name: "a volume of another claim beside a shared volume", Edit: both(sharing(asGiven), volume(claimNamed("mine1")))},
	{Name: "a control store of a shared volume's claim", Rule: "shared-volume-claim-store", Edit: both(existing("mine0"), sharing(asGiven))},
	{Name: "a control store of another claim", Edit: both(existing("mine1"), sharing(asGiven))},

	{Name: "a mount beside a shared volume", Edit: mountsAt("mine", "/data2")},
	{Name: "a mount in a shared volume", Edit: mountsAt("mine", "/data/in")},
	{Name: "a mount at a shared volume", Rule: "shared-volume-mount", Edit: mountsAt("mine", "/data")},
	{Name: "a mount at a shared volume with slashes", Rule: "shared-volume-mount", Edit: mountsAt("mine", "/data//")},
	{Name: "a volume of a shared volume's name", Rule: "shared-volume-taken", Edit: mountsAt("shared-v0", "/mine")},
	{Name: "a volume of nearly a shared volume's name", Edit: mountsAt("shared-v1", "/mine")},
	{Name: "a claim of a shared volume's name", Rule: "shared-volume-claimed", Edit: both(sharing(asGiven), claim(func(c *corev1.PersistentVolumeClaim) { c.Name = "shared-v0" }))},

	{Name: "a shared volume enlarged and retained", Before: sharedOf(ptr("1Gi"), ptr("a")), Edit: sharing(claimed(ptr("2Gi"), ptr("a"), func(v *sharedVolume) { v.Claim.Retain = new(true) }))},
	{Name: "a shared volume in other words", Before: sharedOf(ptr("1Gi"), nil), Edit: sharedOf(ptr("1024Mi"), nil)},
	{Name: "a shared volume of less storage", Before: sharedOf(ptr("2Gi"), nil), Edit: sharedOf(ptr("1Gi"), nil)},
	{Name: "a shared volume of another claim", Before: sharedOf(ptr("1Gi"), nil), Edit: sharing(asGiven)},
	{Name: "a shared volume's class changed", Rule: "shared-volume-class-fixed", Before: sharedOf(ptr("1Gi"), ptr("a")), Edit: sharedOf(ptr("1Gi"), ptr("b"))},
	{Name: "a shared volume's class set", Rule: "shared-volume-class-fixed", Before: sharedOf(ptr("1Gi"), nil), Edit: sharedOf(ptr("1Gi"), ptr("b"))},
	{Name: "a shared volume's class taken away", Rule: "shared-volume-class-fixed", Before: sharedOf(ptr("1Gi"), ptr("a")), Edit: sharedOf(ptr("1Gi"), nil)},
}
