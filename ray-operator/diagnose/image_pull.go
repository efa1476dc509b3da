package diagnose

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// pullFailure is a kind of failure to pull an image, told by any of its marks in the
// message of the runtime, in lower case.
type pullFailure struct {
	kind, words string
	marks       []string
}

// pullFailures in the order in which they are looked for: what is more certain first.
// The words are ours, so that ports and addresses that differ with each try do not
// change the text.
var pullFailures = []pullFailure{
	{"disk", "the node has no space left", []string{"no space left on device"}},
	{"signature", "its signature cannot be validated", []string{"signaturevalidationfailed", "signature validation failed", "signature required"}},
	{"platform", "it has no variant for the node's architecture", []string{"no match for platform", "no matching manifest for"}},
	{"rate", "the registry limits how often one may pull (429)", []string{"429", "toomanyrequests", "too many requests", "rate limit"}},
	{"name", "this is not a valid name of an image", []string{"invalidimagename", "invalid reference format", "failed to parse image reference"}},
	{"network", "the name of the registry cannot be resolved", []string{"dial tcp: lookup ", "no such host", "name resolution"}},
	{"network", "the registry's certificate is not trusted", []string{"x509:", "certificate"}},
	{"network", "the registry does not answer", []string{
		"i/o timeout", "connection refused", "connection reset", "no route to host", "network is unreachable", "tls handshake timeout",
		"deadline exceeded", "registryunavailable", "registry is unavailable", "client.timeout", "unexpected eof",
	}},
	{"network", "the registry fails (5xx)", []string{
		"500 internal server error", "502 bad gateway", "503 service unavailable", "504 gateway", "server response: http 5",
	}},
	{"access", "the registry has no such repository, or hides it from those without credentials", []string{
		"repository does not exist or may require", "insufficient_scope", "pull access denied",
	}},
	{"credentials", "the registry wants credentials", []string{
		"401", "unauthorized", "unauthenticated", "authentication required", "no basic auth", "authorization failed", "failed to authorize",
	}},
	{"credentials", "the registry denies access", []string{"403", "forbidden", "denied"}},
	{"missing", "the registry does not have it", []string{"not found", "manifest unknown", "name unknown", "manifest_unknown", "404"}},
}

// imageFailure boils down why the image of a container cannot be pulled. Why is the container's reason.
func imageFailure(container *corev1.Container, why, message string) reason.Finding {
	failed := func(kind string) reason.Reason {
		if container.Name == v1beta1.ContainerHistory { // the image is the operator's: nobody corrects it in a spec
			kind = "collector"
		}
		return reason.ImagePullFailed.In(kind)
	}
	image := container.Image
	image = clean(image, wordLength)
	if why == "ErrImageNeverPull" {
		return failed("never").Of(image, "it is not on the node, and imagePullPolicy is Never")
	}
	// The image's own name may hold a mark, such as a tag 404.
	said := strings.ToLower(why + " " + strings.ReplaceAll(message, image, ""))
	for _, failure := range pullFailures {
		for _, mark := range failure.marks {
			if strings.Contains(said, mark) {
				return failed(failure.kind).Of(image, failure.words)
			}
		}
	}
	words := message
	if cut := strings.LastIndex(message, "desc = "); cut >= 0 {
		words = message[cut+len("desc = "):]
	}
	if words = clean(words, wordLength); words == "" {
		words = why
	}
	return failed("").Of(image, words)
}
