package diagnose

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// NotMade returns why a controller of Kubernetes cannot make a pod, such as that of a StatefulSet, by the events of the
// controller's object. It is false where the newest of them is not about that.
func NotMade(pod *corev1.Pod, events []corev1.Event) (finding reason.Finding, found bool) {
	for _, event := range byTime(events) {
		switch event.Reason {
		case "FailedCreate":
			refused := &apierrors.StatusError{ErrStatus: metav1.Status{Message: refusedWords(event.Message)}}
			finding, found = Refusal("pod "+pod.Name, OfPod(pod, refused)), true
		case "SuccessfulCreate":
			found = false
		}
	}
	return finding, found
}

// refusedWords returns the API server's part of a controller's message.
func refusedWords(message string) string {
	for _, before := range []string{" failed error: ", "Error creating: "} {
		if _, words, is := strings.Cut(message, before); is {
			return words
		}
	}
	return message
}
