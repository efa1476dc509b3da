package diagnose_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/heliostat-dev/heliostat/ray-operator/diagnose"
)

// recording is a pod of a real kubelet 1.36 on containerd, with its events.
type recording struct {
	Pod    corev1.Pod     `json:"pod"`
	Events []corev1.Event `json:"events"`
}

func recorded(t *testing.T, name string) recording {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", "kubelet", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var all recording
	if err := yaml.UnmarshalStrict(content, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// at is some seconds after the newest thing in a recording.
func (r recording) at() time.Time {
	newest := r.Pod.CreationTimestamp.Time
	for _, event := range r.Events {
		if event.LastTimestamp.After(newest) {
			newest = event.LastTimestamp.Time
		}
	}
	return newest.Add(10 * time.Second)
}

// told is what each recording is told as. Those that begin with "+" need the events.
var told = map[string]string{
	"notfound": "ImagePullFailed: image registry.invalid/ray:1 cannot be pulled: the name of the registry cannot be resolved. " +
		"Check that the nodes reach the registry",
	"refused": "ImagePullFailed: image 127.0.0.1:5999/ray:404 cannot be pulled: the registry does not answer. " +
		"Check that the nodes reach the registry",
	"badname": "ImagePullFailed: image UPPER/ray:1 cannot be pulled: this is not a valid name of an image. Correct the image's name",
	"never": "ImagePullFailed: image x/y:1 cannot be pulled: it is not on the node, and imagePullPolicy is Never. " +
		"Load it onto the nodes, or change imagePullPolicy",
	"multi": "ImagePullFailed: image registry.invalid/x:2 cannot be pulled: the name of the registry cannot be resolved. " +
		"Check that the nodes reach the registry",
	"nosecretenv": "ConfigError: container ray cannot be created: Secret creds does not exist. " +
		"Create Secret creds, or correct env and envFrom in the template",
	"nocmenv": "ConfigError: container ray cannot be created: ConfigMap nope does not exist. " +
		"Create ConfigMap nope, or correct env and envFrom in the template",
	"nokeyenv": "ConfigError: container ray cannot be created: Secret half has no key token. " +
		"Add the key to Secret half, or correct env in the template",
	"root": "ConfigError: container ray cannot be created: container has runAsNonRoot and image will run as root. " +
		"Set runAsUser in the securityContext of the template to a user other than 0",
	"nosecretvol": "+VolumeNotReady: Secret gone of a volume does not exist. Create Secret gone, or correct the volume in the template",
	"nocmvol":     "+VolumeNotReady: ConfigMap gone of a volume does not exist. Create ConfigMap gone, or correct the volume in the template",
	"nokeyvol": "+VolumeNotReady: volume d: there is no key z. " +
		"Add the key to what it is made of, or correct the volume in the template",
	"hostpath": "+VolumeNotReady: volume d: hostPath type check failed: /nowhere is not a directory. " +
		"Check the events of the pod and its claims",
	"crash": "CrashLoop: container ray ended with exit code 3 (4 restarts): starting | ConnectionError: no head. " +
		"Check its log: kubectl logs --previous",
	"mismatch": "VersionMismatch: Ray refuses it: the head runs Ray 2.60.0 and Python 3.11.9, this image has Ray 2.59.0 and Python 3.11.2. " +
		"Use the head's image, or one with the same versions of Ray and, to the patch, Python",
	"oom": "OutOfMemory: container ray ran out of memory at its limit of 20Mi (4 restarts). Raise memory in size or the template",
	"noexec": `StartFailed: container ray cannot be started: exec: "/no/such": stat /no/such: no such file or directory. ` +
		"Correct command, mounts or securityContext of the container, or the image",
	"init": "InitFailed: init container fetch ended with exit code 7 (4 restarts): no route to bucket. " +
		"Correct the init container in the template",
	"initrun": "InitRunning: init container fetch is running",
	"side":    "SidecarFailed: container logs ended with exit code 1 (4 restarts): bye. Correct that container in the template",
	"probe":   "Starting: container ray is starting",
	"startup": "Starting: container ray is starting",
	"gate":    "ReadinessGated: waits for its readiness gate example.com/lb",
	"evict": "Evicted: was evicted from node node1: Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. " +
		"Request ephemeral-storage in size, or write less to disk",
	"evictapi":   "Evicted: was evicted from node node1: by the eviction API, as kubectl drain and autoscalers do",
	"taintevict": "NodeLost: its node node1 is lost: it has a NoExecute taint, as nodes get that do not answer",
	"nodelost":   "NodeLost: its node node1 is lost: it does not answer, and Kubernetes calls its pods not ready",
	"refusedbynode": "NodeRefused: node node1 refused it (OutOfcpu): " +
		"Pod was rejected: Node didn't have enough resource: cpu, requested: 64000, used: 0, capacity: 2000. " +
		"The operator replaces it; if this repeats, check the node's devices and resources",
}

func TestRecordedPods(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "kubelet", "*.yaml"))
	if err != nil || len(files) != len(told) {
		t.Fatalf("%d recordings (%v), %d told", len(files), err, len(told))
	}
	for name, want := range told {
		t.Run(name, func(t *testing.T) {
			recording := recorded(t, name)
			now := recording.at()
			want, needed := strings.CutPrefix(want, "+")
			finding, ok := diagnose.Pod(&recording.Pod, recording.Events, now)
			if have := finding.Code + ": " + finding.Text; !ok || have != want {
				t.Errorf("told as\n  %s\nwant\n  %s", have, want)
			}
			if have := diagnose.NeedsEvents(&recording.Pod, now); have != needed {
				t.Errorf("needs its events: %v, want %v", have, needed)
			}
			without, ok := diagnose.Pod(&recording.Pod, nil, now)
			if !ok || (without == finding) == needed {
				t.Errorf("without its events told as %s: %s", without.Code, without.Text)
			}
			if later, _ := diagnose.Pod(&recording.Pod, recording.Events, now.Add(7*time.Second)); later != finding {
				t.Errorf("seven seconds later told as %s: %s", later.Code, later.Text)
			}
		})
	}
}
