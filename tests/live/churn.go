package live

import "fmt"

// What happens to a cluster that scales by itself: labels of specs, and the names under
// which they report a Churn, and seconds.
const (
	ChurnLabel, ChurnEntry = "churn", "tasks as workers come and go"
	AwayLabel, AwayEntry   = "api-away", "API server back to workers made"
	AnewLabel, AnewEntry   = "head-anew", "head lost to demand served"
)

// Churn is what became of tasks that nothing may run twice, and of objects, while workers
// came and went.
type Churn struct {
	// Done tasks, and objects that could be Read in the end.
	Done int `json:"done"`
	Read int `json:"read"`
	// Gone are the workers that were told to go meanwhile.
	Gone int `json:"gone"`
}

// String is the count in one line.
func (c Churn) String() string {
	return fmt.Sprintf("%d tasks done, %d objects read, %d workers gone", c.Done, c.Read, c.Gone)
}
