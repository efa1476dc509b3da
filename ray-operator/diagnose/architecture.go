package diagnose

import (
	"regexp"
	"slices"
	"strings"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// Architectures as Kubernetes writes them.
const (
	amd64 = "amd64"
	arm64 = "arm64"
)

// foreignForm is all that a runtime says where the kernel cannot run a program: in the log, or as the reason of a failed
// start. A program that says so of another one says more.
var foreignForm = regexp.MustCompile(`(?i)(?:^|: )exec (?:user process caused:? "?|(?:container process )?\S+: )exec format error"?(?:: unknown)?$`)

// isForeign reports whether a container ended because its program is for another architecture.
func isForeign(message string) bool {
	const most = 1 << 10
	message = strings.TrimSpace(message)
	return len(message) <= most && !strings.Contains(message, "\n") && foreignForm.MatchString(message)
}

// wrongArchitecture names the node's architecture, the image's, and an image to take, as far as they are known.
func (c container) wrongArchitecture() reason.Finding {
	name, node, image := c.spec.Name, c.node, clean(c.spec.Image, wordLength)
	if c.architecture != "" {
		node += " (" + clean(c.architecture, nameLength) + ")"
	}
	its, other := architectureOf(image, c.architecture)
	switch {
	case its == "" || its == c.architecture: // a name may say anything
		return reason.WrongArchitecture.Of(name, node, image, "another architecture")
	case other == "":
		return reason.WrongArchitecture.Of(name, node, image, its)
	default:
		return reason.WrongArchitecture.In("image").Of(name, node, image, its, other, its)
	}
}

// suffixes of tags that name an architecture.
var suffixes = map[string]string{"-aarch64": arm64, "-arm64": arm64, "-amd64": amd64, "-x86_64": amd64}

// rayImage is where Ray's own images are. Each tag of theirs is for one architecture: amd64 where it names none.
const rayImage = "rayproject/ray:"

// architectureOf returns the architecture that the tag of an image names, empty where it names none, and for Ray's own image
// the one for the architecture that is wanted, if there is one.
func architectureOf(image, wanted string) (its, other string) {
	for suffix, architecture := range suffixes {
		if strings.HasSuffix(image, suffix) {
			its = architecture
		}
	}
	at := strings.Index(image, rayImage)
	if at < 0 || at > 0 && image[at-1] != '/' || strings.Contains(image, "@") {
		return its, ""
	}
	switch {
	case its == "" && wanted == arm64:
		return amd64, image + "-aarch64"
	case its == "":
		return amd64, ""
	case its == arm64 && wanted == amd64:
		return its, strings.TrimSuffix(image, "-aarch64")
	default:
		return its, ""
	}
}

// runsBeside reports whether a container is one that the operator has run beside Ray.
func runsBeside(name string) bool {
	return slices.Contains([]string{v1beta1.ContainerAutoscaler, v1beta1.ContainerEncryption}, name)
}
