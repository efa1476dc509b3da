package reason

// States of a cluster's autoscaling.
var (
	HeadWithoutAutoscaler = Reason{
		"HeadWithoutAutoscaler", Warning, "Autoscaling was enabled while the head was running, and the operator does not restart a running head.",
		"head pod %s runs without the autoscaler, so groups keep their current sizes",
		"Delete the head pod at a convenient time; head and workers restart, and autoscaling starts", nil,
	}
	AutoscalerUnreachable = Reason{
		"AutoscalerUnreachable", Warning, "The operator cannot reach the autoscaler in the head pod. Group sizes are frozen within their bounds.",
		"the autoscaler in head pod %s has not answered since %s: %s",
		"Check the container autoscaler of the head pod, and network policies that block the operator from port 6380", nil,
	}
	AutoscalerTrouble = Reason{
		"AutoscalerTrouble", Warning, "The autoscaler cannot read the demand in Ray. Group sizes stay as they are.",
		"the autoscaler cannot decide: %s", "Check the logs of the head pod", nil,
	}
	AutoscalerStarting = Reason{
		"AutoscalerStarting", Progress, "The head has just started, and its autoscaler has not reported yet.",
		"the autoscaler in head pod %s has not reported yet", "", nil,
	}
	Autoscaled = Reason{
		"Autoscaled", Fine, "The groups have the sizes that the autoscaler decided, within their bounds.",
		"the autoscaler decides: %s", "", nil,
	}
	SizesHeld = Reason{
		"SizesHeld", Fine, "Autoscaling was disabled. The groups keep their last sizes.",
		"autoscaling is off, and groups keep their last sizes: %s", "Edit replicas of a group to change its size", nil,
	}
	Infeasible = Reason{
		"Infeasible", Warning, "Demand in Ray fits no group, however many workers it has.",
		"no group can ever satisfy %s",
		"Request less, or add a group whose workers have it", nil,
	}
	Scaled = Reason{"Scaled", Fine, "The autoscaler changed the size of a group.", "scaled group %s %d → %d: %s", "", nil}
)

func autoscaling() Section {
	return Section{"Autoscaling", []Reason{
		HeadWithoutAutoscaler, AutoscalerUnreachable, AutoscalerTrouble, Infeasible, AutoscalerStarting, Autoscaled, SizesHeld, Scaled,
	}}
}
