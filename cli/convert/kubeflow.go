package convert

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/heliostat-dev/heliostat/ray-operator/convert"
)

// addChoices adds the flags about jobs of Kubeflow.
func addChoices(to *convert.Choices, flags *pflag.FlagSet) {
	flags.StringVar(&to.Onto, "onto", "", "run jobs of Kubeflow on this existing cluster, instead of one of their own")
	flags.StringVar(&to.Command, "command", "", "program of containers of Kubeflow's jobs that name none, such as 'python /app/train.py'; "+
		"it is divided at spaces, and quotes hold words together")
	flags.StringArrayVar(&to.Images, "image", nil, "FROM=TO takes the image TO where a job of Kubeflow names FROM, and IMAGE alone is "+
		"for containers "+
		"that name none; can be given more than once")
	flags.StringArrayVar(&to.Selectors, "label-selector", nil, "ROLE=KEY=VALUE picks Ray nodes for a role of the gang, with --onto; "+
		"can be given "+
		"more than once")
}

// readChoices reads what the flags say.
func readChoices(from *convert.Choices) (convert.Kubeflow, error) {
	made, err := from.Read()
	if wrong := (*convert.ChoiceError)(nil); errors.As(err, &wrong) {
		return made, fmt.Errorf("--%w", wrong)
	}
	return made, err
}
