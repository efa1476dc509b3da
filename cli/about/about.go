// Package about has the commands about the user and the programs: whoami, version.
//
// In: the kubeconfig. Out: who the API server takes the user for and what they may do; which versions run.
//
// It must never print a credential.
package about

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/output"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// Commands returns the commands of the package.
func Commands(c *console.Console) []*cobra.Command { return []*cobra.Command{whoami(c), version(c)} }

// ability is something that commands need, and the right that it takes.
type ability struct {
	what, verb, group, resource, subresource string
}

// abilities are those that a user may want to know of.
func abilities() []ability {
	group := v1beta1.GroupVersion.Group
	return []ability{
		{"see clusters", "list", group, kube.Cluster.Resource, ""},
		{"see jobs", "list", group, kube.Job.Resource, ""},
		{"see services", "list", group, kube.Service.Resource, ""},
		{"see schedules", "list", group, kube.Schedule.Resource, ""},
		{"see why pods wait", "list", "", "pods", ""},
		{"create clusters", "create", group, kube.Cluster.Resource, ""},
		{"create jobs", "create", group, kube.Job.Resource, ""},
		{"create services", "create", group, kube.Service.Resource, ""},
		{"create schedules", "create", group, kube.Schedule.Resource, ""},
		{"change clusters", "patch", group, kube.Cluster.Resource, ""},
		{"use clusters of others", "use", group, kube.Cluster.Resource, ""},
		{"reach heads by port-forward", "create", "", "pods", "portforward"},
		{"read tokens of clusters", "get", "", "secrets", ""},
	}
}

// identity is who somebody is and what they may do, for programs.
type identity struct {
	User      string   `json:"user"`
	Groups    []string `json:"groups,omitempty"`
	Namespace string   `json:"namespace"`
	Rights    []right  `json:"rights"`
}

type right struct {
	What  string `json:"what"`
	Verb  string `json:"verb"`
	On    string `json:"resource"`
	IsHad bool   `json:"allowed"`
}

func whoami(c *console.Console) *cobra.Command {
	out := output.NewFlags()
	command := &cobra.Command{
		Use: "whoami", Short: "Show your user name and your rights in the namespace",
		Args: console.Arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := out.Check(); err != nil {
				return err
			}
			objects, err := c.Connect()
			if err != nil {
				return err
			}
			who, err := identify(cmd.Context(), objects)
			if err != nil {
				return err
			}
			if !out.IsTable() {
				return out.Answer(c.Out, "Identity", who)
			}
			c.Note("%s, of %s, %s", who.User, strings.Join(who.Groups, ", "), kube.Where(who.Namespace))
			return out.Rows(c.Out, tableOf(who))
		},
	}
	out.Add(command.Flags())
	return command
}

func identify(ctx context.Context, objects *kube.Objects) (identity, error) {
	user, err := objects.User(ctx)
	if err != nil {
		return identity{}, err
	}
	who := identity{User: user.Username, Groups: user.Groups, Namespace: objects.Namespace}
	for _, one := range abilities() {
		isHad, err := objects.May(ctx, authorizationv1.ResourceAttributes{Namespace: objects.Namespace, Verb: one.verb,
			Group: one.group, Resource: one.resource, Subresource: one.subresource})
		if err != nil {
			return identity{}, err
		}
		on := one.resource
		if one.subresource != "" {
			on += "/" + one.subresource
		}
		who.Rights = append(who.Rights, right{one.what, one.verb, on, isHad})
	}
	return who, nil
}

func tableOf(who identity) output.Table {
	table := output.Table{Columns: output.Columns("MAY", "WHAT", "right")}
	for _, one := range who.Rights {
		may := "no"
		if one.IsHad {
			may = "yes"
		}
		table.Rows = append(table.Rows, []string{may, one.What, one.Verb + " " + one.On})
	}
	return table
}

// versions are those of the programs, for programs.
type versions struct {
	Program  string   `json:"program"`
	Operator []string `json:"operator,omitempty"`
	Ray      string   `json:"verifiedRay"`
}

func version(c *console.Console) *cobra.Command {
	out := output.NewFlags()
	isClient := false
	command := &cobra.Command{
		Use: "version", Short: "Show the versions of this program and of the operator",
		Args: console.Arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := out.Check(); err != nil {
				return err
			}
			said := versions{Program: ofProgram(), Ray: naming.VerifiedRay}
			if !isClient {
				operators, err := findOperators(cmd.Context(), c)
				if err != nil {
					c.Note("warning: the operator's version is not known: %v", err)
				}
				said.Operator = operators
			}
			if !out.IsTable() {
				return out.Answer(c.Out, "Versions", said)
			}
			fmt.Fprintf(c.Out, "heliostat  %s\n", said.Program)
			for _, one := range said.Operator {
				fmt.Fprintf(c.Out, "operator   %s\n", console.Printable(one))
			}
			fmt.Fprintf(c.Out, "Ray        %s are verified\n", said.Ray)
			return nil
		},
	}
	command.Flags().BoolVar(&isClient, "client", false, "show the version of this program only")
	out.AddFormat(command.Flags())
	return command
}

// release is the version of a release, which its build sets by the linker's flag -X.
var release string

// ofProgram is what this program was built from.
func ofProgram() string {
	if release != "" {
		return release
	}
	info, is := debug.ReadBuildInfo()
	if !is || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}

// findOperators returns the images of the operators that are installed, which only administrators may see.
func findOperators(ctx context.Context, c *console.Console) ([]string, error) {
	objects, err := c.Connect()
	if err != nil {
		return nil, err
	}
	list := &appsv1.DeploymentList{}
	if err := objects.List(ctx, list, client.MatchingLabels{"app.kubernetes.io/name": "heliostat",
		"app.kubernetes.io/component": "operator"}); err != nil {
		return nil, kube.Because(fmt.Errorf("list operators: %w", err))
	}
	var all []string
	for i := range list.Items {
		one := &list.Items[i]
		for _, container := range one.Spec.Template.Spec.Containers {
			all = append(all, fmt.Sprintf("%s (%s/%s)", container.Image, one.Namespace, one.Name))
			break
		}
	}
	return all, nil
}
