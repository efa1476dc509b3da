package diagnose

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// NotMade is why a controller of Kubernetes' own cannot make an object, such as the pod of a StatefulSet, by the events of
// what it makes it for. It is false where the newest of them says nothing of that.
func NotMade(object string, events []corev1.Event) (finding reason.Finding, found bool) {
	for _, event := range byTime(events) {
		switch event.Reason {
		case "FailedCreate":
			refused := &apierrors.StatusError{ErrStatus: metav1.Status{Message: refusedWords(event.Message)}}
			finding, found = Refusal(object, refused), true
		case "SuccessfulCreate":
			found = false
		}
	}
	return finding, found
}

// refusedWords are those of the API server in what a controller says of them.
func refusedWords(message string) string {
	for _, before := range []string{" failed error: ", "Error creating: "} {
		if _, words, is := strings.Cut(message, before); is {
			return words
		}
	}
	return message
}
