package diagnose

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// containerRedis is that of a managed Redis.
const containerRedis = "redis"

// Fields that set the sizes of containers.
const (
	rayField      = "size or the template's resources"
	templateField = "the template's resources"
	redisField    = "controlStore.managedRedis.size"
)

// fieldOf returns the field that sets the size of a container, in a pod of Ray or of a managed Redis.
func fieldOf(container string, ofRedis bool) string {
	switch container {
	case v1beta1.ContainerRay:
		return rayField
	case containerRedis:
		if ofRedis {
			return redisField
		}
	case v1beta1.ContainerAutoscaler:
		return "autoscaling.size"
	case v1beta1.ContainerCertificates, v1beta1.ContainerEncryption:
		if ofRedis {
			return redisField
		}
		return "network.encryptionSize"
	}
	return templateField
}

// fieldsOf returns the fields that set the sizes of containers, each once, that of Ray's container last.
func fieldsOf(containers []string, ofRedis bool) []string {
	var fields []string
	for _, container := range containers {
		if field := fieldOf(container, ofRedis); !slices.Contains(fields, field) {
			fields = append(fields, field)
		}
	}
	slices.SortStableFunc(fields, func(a, b string) int { return boolOrder(a == rayField) - boolOrder(b == rayField) })
	return fields
}

func boolOrder(last bool) int {
	if last {
		return 1
	}
	return 0
}

// isOfRedis reports whether a pod is a managed Redis'.
func isOfRedis(about *corev1.Pod) bool {
	return about != nil && !slices.ContainsFunc(about.Spec.Containers, func(c corev1.Container) bool { return c.Name == v1beta1.ContainerRay })
}

// keyOf returns the key by which a field has a resource that a ResourceQuota names: limits.cpu as it is, memory for
// requests.memory and limits.memory.
func keyOf(resource string) string {
	if resource == string(corev1.ResourceLimitsCPU) {
		return resource
	}
	return strings.TrimPrefix(strings.TrimPrefix(resource, "requests."), "limits.")
}

// unsized returns what to set where, for the words of a ResourceQuota of what which containers must specify:
// "must specify limits.cpu for: autoscaler,ray; limits.memory for: ray".
func unsized(words string, about *corev1.Pod) string {
	var settings []string
	for part := range strings.SplitSeq(strings.TrimPrefix(words, "must specify "), "; ") {
		resource, list, _ := strings.Cut(part, " for: ")
		containers := strings.Split(list, ",")
		fields := fieldsOf(containers, isOfRedis(about) || about == nil && slices.Contains(containers, containerRedis))
		if setting := keyOf(clean(resource, nameLength)) + " in " + strings.Join(fields, ", and in "); !slices.Contains(settings, setting) {
			settings = append(settings, setting)
		}
	}
	return strings.Join(settings, "; ")
}

var (
	limitForm = regexp.MustCompile(`^\[?(?:minimum|maximum) \S+ usage per |^\[?\S+ max limit to request ratio per `)
	// rangeForm is one thing that a LimitRange asks for, and what a container has instead.
	rangeForm = regexp.MustCompile(`(?:(?:minimum|maximum) (\S+) usage|(\S+) max limit to request ratio) per (\S+) is \S+?(?:\.  |, but )` +
		`(?i:(request|limit|provided ratio) is ([^\s,\]]+)|no (request|limit) is specified)`)
)

func parseLimitRange(message string, about *corev1.Pod) (reason.Finding, bool) {
	if !limitForm.MatchString(message) {
		return reason.Finding{}, false
	}
	text := strings.Trim(message, "[]") // which are around a list
	found := breaches(text, about)
	if settings, are := defaults(found, isOfRedis(about)); are {
		return reason.LimitRangeViolated.In("default").Of(clean("with its default limit, "+text, listLength), clean(settings, listLength)), true
	}
	fields := []string{rayField}
	if len(found) > 0 {
		var names []string
		for _, one := range found {
			names = append(names, one.container)
		}
		fields = fieldsOf(names, isOfRedis(about))
	}
	return reason.LimitRangeViolated.Of(clean(text, listLength), strings.Join(fields, ", and ")), true
}

// breach is what a LimitRange does not allow of a container.
type breach struct {
	container string
	resource  corev1.ResourceName
	// isDefault tells that the container gives no limit, so that the LimitRange's default is meant.
	isDefault bool
}

// breaches returns what a LimitRange does not allow of a pod's containers, of init containers first. Where no container gives
// a limit that is named, it is the LimitRange's own.
func breaches(message string, about *corev1.Pod) []breach {
	if about == nil {
		return nil
	}
	var all []breach
	for _, form := range rangeForm.FindAllStringSubmatch(message, -1) {
		resource, what := corev1.ResourceName(form[1]+form[2]), strings.ToLower(form[4]+form[6])
		var own, unlimited []breach
		for _, container := range slices.Concat(about.Spec.InitContainers, about.Spec.Containers) {
			if form[3] != string(corev1.LimitTypeContainer) || has(&container.Resources, resource, what, form[5]) {
				own = append(own, breach{container.Name, resource, false})
			}
			if _, isLimited := container.Resources.Limits[resource]; !isLimited && what != "request" {
				unlimited = append(unlimited, breach{container.Name, resource, true})
			}
		}
		if len(own) == 0 {
			own = unlimited
		}
		all = append(all, own...)
	}
	return all
}

// defaults returns the limits to set where all that a LimitRange does not allow are default limits of its own.
func defaults(found []breach, ofRedis bool) (settings string, are bool) {
	var all []string
	for _, one := range found {
		if !one.isDefault {
			return "", false
		}
		if setting := limitIn(one.resource, one.container, ofRedis); !slices.Contains(all, setting) {
			all = append(all, setting)
		}
	}
	return strings.Join(all, "; "), len(all) > 0
}

// limitIn returns the key of a container's limit, and its field.
func limitIn(resource corev1.ResourceName, container string, ofRedis bool) string {
	return keyOf("limits."+string(resource)) + " in " + fieldOf(container, ofRedis)
}

// has reports whether a container gives a request, a limit or a ratio of the two of this value; without a value, whether it
// gives none.
func has(resources *corev1.ResourceRequirements, name corev1.ResourceName, what, value string) bool {
	limit, isLimited := resources.Limits[name]
	request, isRequested := resources.Requests[name]
	if !isRequested {
		request, isRequested = limit, isLimited
	}
	switch {
	case what == "request" && value == "":
		return !isRequested
	case what == "request":
		return isRequested && request.String() == value
	case !isLimited:
		return value == ""
	case what == "limit":
		return limit.String() == value
	}
	ratio, err := strconv.ParseFloat(value, 64)
	return err == nil && math.Abs(limit.AsApproximateFloat64()/request.AsApproximateFloat64()-ratio) < 0.01*ratio
}

// aboveForm is a request above a limit.
var aboveForm = regexp.MustCompile(`spec\.(c|initC)ontainers\[([0-9]+)\]\.resources\.requests: Invalid value: "([^"]*)": ` +
	`must be less than or equal to (\S+) limit of ([^\s,\]]+)`)

// parseDefaultLimit reads a request above a limit that the pod does not give: a LimitRange's default. A limit of the user's
// own that is too low is refused before there is a pod.
func parseDefaultLimit(message string, about *corev1.Pod) (reason.Finding, bool) {
	var texts, settings []string
	for _, form := range aboveForm.FindAllStringSubmatch(message, -1) {
		container := at(about, form[1] == "initC", form[2])
		if container == nil {
			return reason.Finding{}, false
		}
		resource := corev1.ResourceName(form[4])
		if _, isOwn := container.Resources.Limits[resource]; isOwn {
			return reason.Finding{}, false
		}
		texts = append(texts, fmt.Sprintf("its default limit of %s is %s, below the request of %s of container %s",
			clean(form[4], nameLength), clean(form[5], nameLength), clean(form[3], nameLength), container.Name))
		setting := limitIn(resource, container.Name, isOfRedis(about))
		if !slices.Contains(settings, setting) {
			settings = append(settings, setting)
		}
	}
	if len(texts) == 0 {
		return reason.Finding{}, false
	}
	return reason.LimitRangeViolated.In("default").Of(clean(strings.Join(texts, "; "), listLength), clean(strings.Join(settings, "; "), listLength)), true
}

// at returns a container of a pod by its place in the list, nil where there is none.
func at(about *corev1.Pod, isInit bool, place string) *corev1.Container {
	if about == nil {
		return nil
	}
	containers := about.Spec.Containers
	if isInit {
		containers = about.Spec.InitContainers
	}
	index, err := strconv.Atoi(place)
	if err != nil || index >= len(containers) {
		return nil
	}
	return &containers[index]
}
