package validate

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

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
		ID: "rolling-type", Field: "spec.upgradeStrategy.rollingWorkers", By: Expression,
		Refused: "rollingWorkers must be used with type RollingWorkers", Remedy: "set that type or leave rollingWorkers out",
		cluster: func(c *v1beta1.ComputeCluster, bad report) {
			if u := c.Spec.UpgradeStrategy; u != nil && u.RollingWorkers != nil && u.Type != v1beta1.ClusterUpgradeRollingWorkers {
				bad.at(field.NewPath("spec", "upgradeStrategy", "rollingWorkers"), nil)
			}
		},
	},
	{
		ID: "rolling-amount", Field: "spec.upgradeStrategy.rollingWorkers.maxUnavailable, spec.upgradeStrategy.rollingWorkers.maxSurge",
		By:      Expression,
		Refused: "an amount must be a number from 0 to 10000 or a percentage from 0% to 100%", Remedy: "give one such as 1 or 25%",
		cluster: func(c *v1beta1.ComputeCluster, bad report) {
			if u := c.Spec.UpgradeStrategy; u != nil && u.RollingWorkers != nil {
				at := field.NewPath("spec", "upgradeStrategy", "rollingWorkers")
				refuseNoAmount(bad, at.Child("maxUnavailable"), u.RollingWorkers.MaxUnavailable)
				refuseNoAmount(bad, at.Child("maxSurge"), u.RollingWorkers.MaxSurge)
			}
		},
	},
	{
		ID: "rolling-none", Field: "spec.upgradeStrategy.rollingWorkers", By: Expression,
		Refused: "maxUnavailable and maxSurge must not both be 0", Remedy: "set one of them above 0",
		cluster: func(c *v1beta1.ComputeCluster, bad report) {
			if u := c.Spec.UpgradeStrategy; u != nil && u.RollingWorkers != nil && isNone(u.RollingWorkers.MaxUnavailable, 1) && isNone(u.RollingWorkers.MaxSurge, 0) {
				bad.at(field.NewPath("spec", "upgradeStrategy", "rollingWorkers"), nil)
			}
		},
	},
}

// percentage is the form of a text in the place of a number of replicas.
var percentage = regexp.MustCompile(`^(100|[1-9]?[0-9])%$`)

// refuseNoAmount reports an amount of replicas that is neither a number within the bounds nor a percentage.
func refuseNoAmount(bad report, path *field.Path, amount *intstr.IntOrString) {
	if amount == nil {
		return
	}
	isNumber := amount.Type == intstr.Int && amount.IntVal >= 0 && amount.IntVal <= maxReplicas
	isPercentage := amount.Type == intstr.String && percentage.MatchString(amount.StrVal)
	if !isNumber && !isPercentage {
		bad.at(path, amount.String())
	}
}

// isNone reports whether a number or percentage of replicas is 0.
func isNone(amount *intstr.IntOrString, otherwise int32) bool {
	given := ptr.Deref(amount, intstr.FromInt32(otherwise))
	if given.Type == intstr.String {
		return given.StrVal == "0%"
	}
	return given.IntVal == 0
}
