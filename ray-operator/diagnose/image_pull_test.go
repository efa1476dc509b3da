package diagnose_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/diagnose"
)

const (
	image   = "reg.example.com/team/ray:404"
	resolve = `failed to pull and unpack image "` + image + `": failed to resolve reference "` + image + `": `
	backOff = `Back-off pulling image "` + image + `": ErrImagePull: `
	cannot  = "image " + image + " cannot be pulled: "
	secret  = ". Name a Secret with credentials in podDefaults.imagePullSecrets"
	reach   = ". Check that the nodes reach the registry"
)

// registrysWords are messages of container runtimes and what becomes of them.
var registrysWords = map[string]struct{ why, message, want string }{
	"manifest": {
		"ErrImagePull", "rpc error: code = NotFound desc = " + resolve + image + ": not found",
		"the registry does not have it. Correct the image",
	},
	"manifest unknown": {
		"ErrImagePull", "reading manifest 404 in reg.example.com/team/ray: manifest unknown", "the registry does not have it. Correct the image",
	},
	"no such repository, or private": {
		"ErrImagePull", resolve + "pull access denied, repository does not exist or may require authorization: server message: " +
			"insufficient_scope: authorization failed",
		"the registry has no such repository, or hides it from those without credentials. " +
			"Correct the image, or name a Secret with credentials in podDefaults.imagePullSecrets",
	},
	"no credentials": {
		"ErrImagePull", resolve + "failed to authorize: failed to fetch anonymous token: unexpected status from GET request to " +
			"https://reg.example.com/token: 401 Unauthorized",
		"the registry wants credentials" + secret,
	},
	"wrong credentials": {
		"ErrImagePull", resolve + "unexpected status from HEAD request to https://reg.example.com/v2/team/ray/manifests/404: 403 Forbidden",
		"the registry denies access" + secret,
	},
	"too often": {
		"ErrImagePull", resolve + "failed to copy: httpReadSeeker: failed open: unexpected status code: 429 Too Many Requests - " +
			"Server message: toomanyrequests: You have reached your pull rate limit",
		"the registry limits how often one may pull (429). Use credentials in podDefaults.imagePullSecrets or a mirror; the kubelet retries by itself",
	},
	"no answer": {
		"ErrImagePull", resolve + `failed to do request: Head "https://reg.example.com/v2/": dial tcp 10.0.0.9:443: i/o timeout`,
		"the registry does not answer" + reach,
	},
	"no name": {
		"ErrImagePull", resolve + `failed to do request: Head "https://reg.example.com/v2/": dial tcp: lookup reg.example.com on 10.0.0.10:53: ` +
			"read udp 10.1.2.3:43211->10.0.0.10:53: i/o timeout",
		"the name of the registry cannot be resolved" + reach,
	},
	"certificate": {
		"ErrImagePull", resolve + "failed to do request: tls: failed to verify certificate: x509: certificate signed by unknown authority",
		"the registry's certificate is not trusted" + reach,
	},
	"registry is ill": {
		"RegistryUnavailable", "image pull failed for " + image + " because the registry is unavailable: 503", "the registry does not answer" + reach,
	},
	"server error": {
		"ErrImagePull", resolve + "unexpected status from HEAD request: 502 Bad Gateway", "the registry fails (5xx)" + reach,
	},
	"disk": {
		"ErrImagePull", `failed to extract layer sha256:aa: write /var/lib/containerd/x: no space left on device`,
		"the node has no space left. Free space on the node",
	},
	"platform": {
		"ErrImagePull", resolve + "no match for platform in manifest: not found",
		"it has no variant for the node's architecture. Use an image for the node's architecture",
	},
	"signature": {
		"SignatureValidationFailed", "image pull failed because the signature validation failed",
		"its signature cannot be validated. Sign the image, or use one that is",
	},
	"name": {
		"InvalidImageName", `Failed to apply default image tag "Ray:": couldn't parse image name`,
		"this is not a valid name of an image. Correct the image's name",
	},
	"unheard of": {
		"ErrImagePull", "rpc error: code = Unknown desc = the snapshotter is asleep.", "the snapshotter is asleep. Correct the image, or check the events of the pod",
	},
	"nothing said": {"ImageInspectError", "", "ImageInspectError. Correct the image, or check the events of the pod"},
}

// TestRegistrysWords: messages of containerd and CRI-O, boiled down. Kubelets put the
// last one behind "Back-off pulling image".
func TestRegistrysWords(t *testing.T) {
	for name, test := range registrysWords {
		t.Run(name, func(t *testing.T) {
			for why, message := range map[string]string{test.why: test.message, "ImagePullBackOff": backOff + test.message} {
				if why == "ImagePullBackOff" && (name == "nothing said" || name == "unheard of" || test.why != "ErrImagePull") {
					continue
				}
				pod := onNode(waitingFor(why, message))
				pod.Spec.Containers[0].Image = image
				finding, _ := diagnose.Pod(pod, nil, born)
				if want := cannot + test.want; finding.Code != "ImagePullFailed" || finding.Text != want {
					t.Errorf("%s, told as\n  %s: %s\nwant\n  %s", why, finding.Code, finding.Text, want)
				}
			}
		})
	}
}

func waitingFor(why, message string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: "ray", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: why, Message: message}}}
}

// TestPod_TellsOfACollectorWithoutImage: nobody corrects the operator's image in a spec, so the remedy is another one.
func TestPod_TellsOfACollectorWithoutImage(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n", InitContainers: []corev1.Container{{Name: v1beta1.ContainerHistory, Image: image, RestartPolicy: &always}}}}
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{
		Name: v1beta1.ContainerHistory, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: resolve + image + ": not found"}},
	}}
	finding, found := diagnose.Pod(pod, nil, time.Now())
	if !found || finding.Code != "ImagePullFailed" || !strings.Contains(finding.Text, "history.keep to Records") {
		t.Errorf("it tells %+v", finding)
	}
}
