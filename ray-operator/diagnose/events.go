package diagnose

import (
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// eventful is what the newest events say of a pod whose containers are not made.
func eventful(pod *corev1.Pod, events []corev1.Event) (reason.Finding, bool) {
	var volume, general, setup, pull *reason.Finding
	for _, event := range byTime(events) {
		if event.InvolvedObject.UID != "" && event.InvolvedObject.UID != pod.UID {
			continue
		}
		switch event.Reason {
		case "FailedMount", "FailedAttachVolume", "FailedMapVolume":
			finding, specific := volumeFailure(event.Message)
			if specific {
				volume = &finding
			} else {
				general = &finding
			}
		case "SuccessfulAttachVolume":
			volume, general = nil, nil
		case "FailedCreatePodSandBox", "FailedPrepareDynamicResources", "NetworkNotReady":
			finding := reason.SetupFailed.Of(nodeOf(pod), sandboxWords(event.Message))
			setup = &finding
		case "Pulling":
			finding := reason.ImagePulling.Of(quoted(event.Message), nodeOf(pod))
			// Images are pulled after volumes and network are there.
			volume, general, setup, pull = nil, nil, nil, &finding
		case "Pulled", "Created", "Started":
			volume, general, setup, pull = nil, nil, nil, nil
		}
	}
	for _, finding := range []*reason.Finding{volume, general, setup, pull} {
		if finding != nil {
			return *finding, true
		}
	}
	return reason.Finding{}, false
}

// byTime sorts events, the newest last; those of the same second by what they say.
func byTime(events []corev1.Event) []corev1.Event {
	return slices.SortedStableFunc(slices.Values(events), func(a, b corev1.Event) int {
		return lastSeen(a).Compare(lastSeen(b))
	})
}

func lastSeen(event corev1.Event) time.Time {
	newest := event.FirstTimestamp.Time
	times := []time.Time{event.LastTimestamp.Time, event.EventTime.Time}
	if event.Series != nil {
		times = append(times, event.Series.LastObservedTime.Time)
	}
	for _, t := range times {
		if t.After(newest) {
			newest = t
		}
	}
	return newest
}

// What kubelet and attach controller say of volumes.
var (
	volumeForm    = regexp.MustCompile(`for volume "([^"]+)" ?:? ?(.*)$`)
	volumeKeyForm = regexp.MustCompile(`references non-existent (?:secret|config) key: (\S+)`)
	unmountedForm = regexp.MustCompile(`unmounted volumes=\[([^\]]*)\]`)
	quotedForm    = regexp.MustCompile(`"([^"]+)"`)
	sandboxID     = regexp.MustCompile(`\b[0-9a-f]{64}\b`)
)

// volumeFailure boils down why a volume cannot be had. Specific is false for the
// kubelet's summary, which names no cause.
func volumeFailure(message string) (finding reason.Finding, specific bool) {
	message = strings.ReplaceAll(message, "\n", " ")
	if missing := missingForm.FindStringSubmatch(message); missing != nil {
		object := kindOf(missing[1]) + " " + clean(missing[2], nameLength)
		return reason.VolumeNotReady.In("missing").Of(object+" of a volume does not exist", object), true
	}
	form := volumeForm.FindStringSubmatch(message)
	if form == nil {
		if unmounted := unmountedForm.FindStringSubmatch(message); unmounted != nil {
			return reason.VolumeNotReady.Of("volumes not mounted yet: " + clean(unmounted[1], wordLength)), false
		}
		return reason.VolumeNotReady.Of(clean(message, wordLength)), true
	}
	name, words := clean(form[1], nameLength), clean(form[2], wordLength)
	switch key := volumeKeyForm.FindStringSubmatch(message); {
	case key != nil:
		return reason.VolumeNotReady.In("key").Of("volume "+name+": there is no key "+clean(key[1], nameLength), "what it is made of"), true
	case strings.HasPrefix(message, "Multi-Attach error"):
		return reason.VolumeNotReady.In("attached").Of("volume " + name + ": " + words), true
	default:
		return reason.VolumeNotReady.Of("volume " + name + ": " + words), true
	}
}

// sandboxWords leaves out what differs with each try.
func sandboxWords(message string) string {
	if cut := strings.LastIndex(message, "desc = "); cut >= 0 {
		message = message[cut+len("desc = "):]
	}
	return clean(sandboxID.ReplaceAllString(message, "…"), wordLength)
}

// quoted is the first quoted part of a message.
func quoted(message string) string {
	if form := quotedForm.FindStringSubmatch(message); form != nil {
		return clean(form[1], wordLength)
	}
	return clean(message, wordLength)
}
