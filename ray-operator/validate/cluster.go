package validate

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

var (
	label      = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)
	rayVersion = regexp.MustCompile(naming.RayVersionForm)
	manager    = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[a-zA-Z0-9]([-a-zA-Z0-9._]*[a-zA-Z0-9])?$`)
)

// managedBy is what the API server's default makes of it.
func managedBy(c *v1beta1.ComputeCluster) string {
	if c.Spec.ManagedBy == "" {
		return v1beta1.ManagedByOperator
	}
	return c.Spec.ManagedBy
}

// clusterRules are about the cluster as a whole.
var clusterRules = []Rule{
	{
		ID: "cluster-name", Field: "metadata.name", By: Expression,
		Refused: "metadata.name must be a DNS-1035 label of at most 50 characters: lower-case letters, digits and '-', starting with a letter",
		Remedy:  "choose a shorter or simpler name",
		cluster: func(c *v1beta1.ComputeCluster, bad report) {
			if !label.MatchString(c.Name) || len(c.Name) > naming.MaxCluster {
				bad.at(field.NewPath("metadata", "name"), c.Name)
			}
		},
	},
	{
		ID: "long-text", Field: "any text with a bound", By: Schema, Says: "may not be more than",
		Refused: "the text must not be longer than the field's limit", Remedy: "shorten it", cluster: longTexts, home: longHomeTexts, job: longJobTexts, service: longServiceTexts,
		schedule: longScheduleTexts,
	},
	{
		ID: "long-list", Field: "any list or map with a bound", By: Schema, Says: "must have at most",
		Refused: "the number of entries must not be above the field's limit", Remedy: "remove some", cluster: longLists, node: longNodeLists,
		home: longHomeLists, job: longJobLists, service: longServiceLists, schedule: longScheduleLists,
	},
	{
		ID: "unknown-word", Field: "any field that takes one of some words", By: Schema, Says: "supported values",
		Refused: "the value must be one that the field allows", Remedy: "use one that the reference lists", cluster: unknownWords, job: unknownJobWords, service: unknownServiceWords,
		schedule: unknownScheduleWords,
	},
	{
		ID: "out-of-bounds", Field: "any number with bounds", By: Schema, Says: "should ",
		Refused: "the number, or the number of entries, must be within the field's limits", Remedy: "see the reference for them",
		cluster: numbersOutOfBounds, group: groupOutOfBounds, home: homeOutOfBounds, job: jobOutOfBounds, service: serviceOutOfBounds,
		schedule: scheduleOutOfBounds,
	},
	{
		ID: "ray-version", Field: "spec.rayVersion", By: Expression,
		Refused: "rayVersion must be nightly or a Ray version from 2.52.0 on, such as 2.60.0, 2.61.0rc1 or 2.60.0+own",
		Remedy:  "give one, and put other parts of a tag into image",
		cluster: func(c *v1beta1.ComputeCluster, bad report) {
			if !rayVersion.MatchString(c.Spec.RayVersion) {
				bad.at(field.NewPath("spec", "rayVersion"), c.Spec.RayVersion)
			}
		},
	},
	{
		ID: "ray-version-image", Field: "spec.image", By: Expression,
		Refused: "image must be set for this rayVersion, because no image tag can contain its '+'", Remedy: "set image",
		cluster: func(c *v1beta1.ComputeCluster, bad report) {
			if strings.Contains(c.Spec.RayVersion, "+") && c.Spec.Image == "" {
				bad.at(field.NewPath("spec", "image"), nil)
			}
		},
	},
	{
		ID: "managed-by", Field: "spec.managedBy", By: Expression,
		Refused: "managedBy must be a domain, '/', and a name", Remedy: `give one such as "kueue.x-k8s.io/multikueue"`,
		cluster: func(c *v1beta1.ComputeCluster, bad report) {
			if !manager.MatchString(managedBy(c)) {
				bad.at(field.NewPath("spec", "managedBy"), c.Spec.ManagedBy)
			}
		},
		job: func(r *run, bad report) {
			if !manager.MatchString(jobManagedBy(r.job)) {
				bad.at(specPath.Child("managedBy"), r.spec.ManagedBy)
			}
		},
		service: func(s *serving, bad report) {
			if !manager.MatchString(serviceManagedBy(s)) {
				bad.at(specPath.Child("managedBy"), s.spec.ManagedBy)
			}
		},
	},
	{
		ID: "managed-by-fixed", Field: "spec.managedBy", By: Expression,
		Refused: "managedBy is immutable", Remedy: "create a new cluster",
		change: func(before, after *v1beta1.ComputeCluster, bad report) {
			if managedBy(before) != managedBy(after) {
				bad.at(field.NewPath("spec", "managedBy"), after.Spec.ManagedBy)
			}
		},
	},
	{
		ID: "rolling-type", Field: "spec.upgradeStrategy.rolling", By: Expression,
		Refused: "rolling must be used with type RollingWorkers", Remedy: "set that type or leave rolling out",
		cluster: func(c *v1beta1.ComputeCluster, bad report) {
			if u := c.Spec.UpgradeStrategy; u != nil && u.Rolling != nil && u.Type != v1beta1.UpgradeRollingWorkers {
				bad.at(field.NewPath("spec", "upgradeStrategy", "rolling"), nil)
			}
		},
	},
	{
		ID: "rolling-none", Field: "spec.upgradeStrategy.rolling", By: Expression,
		Refused: "maxUnavailable and maxSurge must not both be 0", Remedy: "set one of them above 0",
		cluster: func(c *v1beta1.ComputeCluster, bad report) {
			if u := c.Spec.UpgradeStrategy; u != nil && u.Rolling != nil && u.Rolling.MaxUnavailable <= 0 && u.Rolling.MaxSurge <= 0 {
				bad.at(field.NewPath("spec", "upgradeStrategy", "rolling"), nil)
			}
		},
	},
}
