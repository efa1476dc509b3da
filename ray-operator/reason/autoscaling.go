package reason

// What becomes of a cluster's autoscaling.
var (
	HeadWithoutAutoscaler = Reason{
		"HeadWithoutAutoscaler", Warning, "Autoscaling was turned on while the head ran, and a running head is not restarted.",
		"head pod %s runs without the autoscaler, so groups keep the sizes that they have",
		"Delete the head pod when it suits you; head and workers start afresh, and are scaled", nil,
	}
	AutoscalerUnreachable = Reason{
		"AutoscalerUnreachable", Warning, "The operator cannot reach the autoscaler beside the head. Sizes are frozen within their bounds.",
		"no word from the autoscaler in head pod %s since %s: %s",
		"See the container autoscaler of the head pod, and whether network policies of others keep the operator from port 6380", nil,
	}
	AutoscalerTrouble = Reason{
		"AutoscalerTrouble", Warning, "The autoscaler cannot read what waits in Ray. Sizes stay as they are.",
		"the autoscaler cannot decide: %s", "See the logs of the head pod", nil,
	}
	AutoscalerStarting = Reason{
		"AutoscalerStarting", Progress, "The head has just started, and its autoscaler has not spoken yet.",
		"the autoscaler in head pod %s has not spoken yet", "", nil,
	}
	Autoscaled = Reason{
		"Autoscaled", Fine, "The groups have the sizes that the autoscaler wants, within their bounds.",
		"the autoscaler decides: %s", "", nil,
	}
	SizesHeld = Reason{
		"SizesHeld", Fine, "Autoscaling was turned off. The groups keep the sizes that they had then.",
		"autoscaling is off, and groups keep the sizes that they had: %s", "Edit replicas of a group to give it another size", nil,
	}
	Infeasible = Reason{
		"Infeasible", Warning, "Something waits in Ray that no group can ever hold, however many workers it has.",
		"nothing can hold %s",
		"Ask for less, or add a group whose workers have it", nil,
	}
	Scaled = Reason{"Scaled", Fine, "The autoscaler gave a group another size.", "scaled group %s %d → %d: %s", "", nil}
)

func autoscaling() Section {
	return Section{"Autoscaling", []Reason{
		HeadWithoutAutoscaler, AutoscalerUnreachable, AutoscalerTrouble, Infeasible, AutoscalerStarting, Autoscaled, SizesHeld, Scaled,
	}}
}
