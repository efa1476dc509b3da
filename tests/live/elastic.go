package live

import "fmt"

// What clusters select groups at zero by, and what becomes of them as their workers are replaced or never start:
// labels of specs, and the names under which they report seconds, a Roll and a Failing.
const (
	SelectedLabel, SelectedEntry = "elastic-selected", "demand of a labelled group at zero to done"
	SliceLabel, SliceEntry       = "elastic-slice", "reservation of a slice at zero to work on each host"
	ElasticRollLabel             = "elastic-roll"
	FailingLabel, FailingEntry   = "elastic-failing", "workers whose image does not exist"
	// AutoscalerTroubleLabel is of the specs of an autoscaler beside hostile job code and a silent control service.
	AutoscalerTroubleLabel = "autoscaler-trouble"
)

// Failing is what became of a demand for workers that never start.
type Failing struct {
	Minutes float64 `json:"minutes"`
	// Demand is how many workers were needed, Most the most that were there at once, Made how many were made in all.
	Demand int `json:"demand"`
	Most   int `json:"most"`
	Made   int `json:"made"`
}

// String is it in one line.
func (f Failing) String() string {
	return fmt.Sprintf("in %.0f min with a demand for %d workers at most %d were there, of %d made", f.Minutes, f.Demand, f.Most, f.Made)
}
