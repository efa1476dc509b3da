package validate

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
)

// template checks what a pod template must leave to the operator. The rest of it is
// the API server's to judge, when the pod is made.
func template(path *field.Path, template *corev1.PodTemplateSpec) field.ErrorList {
	var errs field.ErrorList
	for key := range template.Labels {
		errs = append(errs, reservedKey(path.Child("metadata", "labels"), key)...)
	}
	for key := range template.Annotations {
		errs = append(errs, reservedKey(path.Child("metadata", "annotations"), key)...)
	}
	spec := path.Child("spec")
	for i := range template.Spec.Volumes {
		if name := template.Spec.Volumes[i].Name; name == pod.VolumeShared || name == pod.VolumeToken {
			errs = append(errs, field.Forbidden(spec.Child("volumes").Index(i), "the operator adds a volume of this name; choose another"))
		}
	}
	if template.Spec.ShareProcessNamespace != nil && *template.Spec.ShareProcessNamespace {
		errs = append(errs, field.Forbidden(spec.Child("shareProcessNamespace"),
			"job code could read its neighbours' memory and credentials; leave it out"))
	}
	for i := range template.Spec.Containers {
		if template.Spec.Containers[i].Name == v1alpha1.ContainerRay {
			errs = append(errs, ray(spec.Child("containers").Index(i), &template.Spec.Containers[i])...)
		}
	}
	return errs
}

func reservedKey(path *field.Path, key string) field.ErrorList {
	if strings.HasPrefix(key, "heliostat.dev/") {
		return field.ErrorList{field.Forbidden(path.Key(key), "the prefix heliostat.dev is the operator's own; choose another")}
	}
	return nil
}

// ray checks the Ray container of a template.
func ray(path *field.Path, container *corev1.Container) field.ErrorList {
	var errs field.ErrorList
	if len(container.Command)+len(container.Args) > 0 {
		errs = append(errs, field.Forbidden(path.Child("command"),
			"the operator starts Ray; pass options by rayStartParams, and do what must come before in an init container"))
	}
	for i := range container.Env {
		if pod.OwnsVariable(container.Env[i].Name) {
			errs = append(errs, field.Forbidden(path.Child("env").Index(i), "the operator sets "+container.Env[i].Name+"; leave it out"))
		}
	}
	for i := range container.Ports {
		if owner, number := pod.PortNumber(container.Ports[i].Name); owner && number != container.Ports[i].ContainerPort {
			errs = append(errs, field.Forbidden(path.Child("ports").Index(i),
				fmt.Sprintf("the name %s stands for Ray's port %d; choose another name", container.Ports[i].Name, number)))
		}
	}
	for i := range container.VolumeMounts {
		if at := strings.TrimRight(container.VolumeMounts[i].MountPath, "/"); at == pod.PathShared || at == pod.PathToken {
			errs = append(errs, field.Forbidden(path.Child("volumeMounts").Index(i), "the operator mounts a volume at "+at+"; choose another path"))
		}
	}
	return errs
}

func rayContainer(template *corev1.PodTemplateSpec) *corev1.Container {
	if template == nil {
		return nil
	}
	for i := range template.Spec.Containers {
		if template.Spec.Containers[i].Name == v1alpha1.ContainerRay {
			return &template.Spec.Containers[i]
		}
	}
	return nil
}
