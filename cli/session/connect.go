package session

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heliostat-dev/heliostat/cli/away"
	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/object"
	"github.com/heliostat-dev/heliostat/cli/output"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// versions are those of Ray and of the Python that it runs in; "" is not known.
type versions struct {
	Ray    string `json:"ray,omitempty"`
	Python string `json:"python,omitempty"`
}

// ways are how a cluster is reached, for programs.
type ways struct {
	Cluster versions `json:"cluster"`
	// Here are the versions of this machine.
	Here versions `json:"here"`
	// Differs is why Ray Client does not work from here; "" is that it does.
	Differs string `json:"differs,omitempty"`
	// Service is the host within Kubernetes, Dashboard the address there, and TokenSecret has the token.
	Service     string `json:"service,omitempty"`
	Dashboard   string `json:"dashboard,omitempty"`
	TokenSecret string `json:"tokenSecret,omitempty"`
	// Server is the address of the server that was asked, "" for none.
	Server string `json:"server,omitempty"`
	// Inside are the lines for a shell there.
	Inside *v1beta1.ConnectSummary `json:"inside,omitempty"`
}

func connect(c *console.Console) *cobra.Command {
	out := output.NewFlags()
	command := &cobra.Command{
		Use: "connect NAME", Short: "Compare versions with a cluster, and print how to connect to it",
		Long: `Compare the versions of Ray and Python of a cluster with those of python3 on this machine, and print how to
connect to the cluster from this machine and from inside Kubernetes. Ray Client (ray://) needs the same version of Ray and the
same minor version of Python; heliostat job submit needs neither.`,
		Example: "  heliostat connect dev\n  heliostat connect dev -o jsonpath={.cluster.ray}",
		Args:    console.Arguments(1, 1, "NAME"), ValidArgsFunction: object.Complete(c, kube.Cluster),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := out.Check(); err != nil {
				return err
			}
			clusters, name, err := findCluster(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			found, err := findWays(cmd.Context(), clusters, name)
			if err != nil {
				return kube.Because(err)
			}
			if !out.IsTable() {
				return out.Answer(c.Out, "Connection", found)
			}
			tell(c.Out, name, found)
			return nil
		},
	}
	out.AddFormat(command.Flags())
	c.AddServer(command.Flags())
	return command
}

// findWays asks the head and python3 of this machine for their versions.
func findWays(ctx context.Context, clusters *away.Clusters, name string) (ways, error) {
	found, err := clusters.Objects.Read(ctx, kube.Target{Kind: kube.Cluster, Name: name})
	if err != nil {
		return ways{}, err
	}
	way, err := clusters.Find()
	if err != nil {
		return ways{}, err
	}
	there, err := way.FindVersions(ctx, clusters.Objects.Namespace, name)
	if err != nil {
		return ways{}, err
	}
	of := ways{Cluster: checked(clusters.Console, versions(there)), Here: local(ctx, clusters.Console), Server: clusters.Console.Server.URL}
	of.Differs = differ(of.Cluster, of.Here)
	if cluster, is := found.(*v1beta1.ComputeCluster); is && cluster.Status.ServiceName != "" {
		of.Service = cluster.Status.ServiceName + "." + cluster.Namespace + ".svc"
		of.Dashboard, of.TokenSecret = cluster.Status.DashboardURL, cluster.Status.TokenSecretName
		of.Inside = cluster.Status.Summary.Connect
	}
	return of, nil
}

// version is what a version looks like. Users paste it into a shell, so no other sign may stand in one.
var version = regexp.MustCompile(`^[0-9][0-9A-Za-z.+_-]{0,39}$`)

// checked returns what a head says of its versions without what looks like none, of which it tells the user.
func checked(c *console.Console, of versions) versions {
	for what, said := range map[string]*string{"Ray": &of.Ray, "Python": &of.Python} {
		if *said != "" && !version.MatchString(*said) {
			c.Note("warning: the cluster's %s is not known: what its head says is no version", what)
			*said = ""
		}
	}
	return of
}

// askLocal prints the versions of Python and, where there is one, of Ray.
const askLocal = `import sys
print("Python", ".".join(map(str, sys.version_info[:3])))
import ray
print("Ray", ray.__version__)`

// said is a line with a version.
var said = regexp.MustCompile(`(?m)^(Python|Ray) ([0-9A-Za-z.+-]+)\r?$`)

// local asks python3 of this machine. What it does not say is not known.
func local(ctx context.Context, c *console.Console) versions {
	program := exec.CommandContext(ctx, "python3", "-c", askLocal)
	program.Env = c.Environ
	text, _ := program.Output() // without Ray it fails, and has said the rest
	var here versions
	for _, found := range said.FindAllStringSubmatch(string(text), -1) {
		switch {
		case !version.MatchString(found[2]):
		case found[1] == "Ray":
			here.Ray = found[2]
		default:
			here.Python = found[2]
		}
	}
	return here
}

// differ returns why Ray Client does not work between two, and what helps; "" is that it does, as far as is known.
func differ(cluster, here versions) string {
	switch {
	case here.Python == "" && cluster.Python == "":
		return "there is no python3 here; install it to use ray://"
	case here.Python == "":
		return "there is no python3 here; install Python " + minor(cluster.Python) + " to use ray://"
	case cluster.Python != "" && minor(cluster.Python) != minor(here.Python):
		return fmt.Sprintf("Python %s here and %s there differ, which ray:// refuses; use Python %s here", here.Python, cluster.Python,
			minor(cluster.Python))
	case cluster.Ray == "":
		return "the cluster's Ray is not known, and ray:// needs the same one here"
	case here.Ray == "":
		return fmt.Sprintf(`python3 here has no Ray; pip install "ray[client]==%s" to use ray://`, cluster.Ray)
	case here.Ray != cluster.Ray:
		return fmt.Sprintf(`Ray %s here and %s there differ, which ray:// refuses; pip install "ray[client]==%s"`, here.Ray, cluster.Ray,
			cluster.Ray)
	}
	return ""
}

// minor returns the first two parts of a version.
func minor(version string) string {
	parts := strings.SplitN(version, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// tell prints the lines for people.
func tell(out io.Writer, name string, of ways) {
	fmt.Fprintf(out, "cluster/%s   %s\nthis machine  %s\n", name, of.Cluster, of.Here)
	if of.Differs != "" {
		fmt.Fprintf(out, "\n%s\n", of.Differs)
	}
	fmt.Fprintf(out, "\nA program here, by ray.init():\n  heliostat session %s -- python3 program.py\n", name)
	fmt.Fprintf(out, "A program of this directory there, without Ray here:\n  heliostat job submit --cluster %s --working-dir . -- python program.py\n", name)
	ray := fmt.Sprintf("heliostat session %s -- ray job list", name)
	if of.Server != "" {
		ray = fmt.Sprintf(`eval "$(heliostat env %s --server %s)" && ray job list`, name, of.Server)
	}
	fmt.Fprintf(out, "Ray's own commands here:\n  %s\n", ray)
	if of.Inside == nil { // nothing is said of it yet
		return
	}
	fmt.Fprintln(out, "A shell within Kubernetes, with the cluster's versions of Ray and Python:")
	for _, line := range []string{of.Inside.Token, of.Inside.Certificate, of.Inside.Jobs, of.Inside.Client} {
		if line != "" {
			fmt.Fprintf(out, "  %s\n", console.Printable(line))
		}
	}
}

// String returns the versions for people.
func (v versions) String() string {
	ray, python := "no Ray", "no Python"
	if v.Ray != "" {
		ray = "Ray " + v.Ray
	}
	if v.Python != "" {
		python = "Python " + v.Python
	}
	return ray + ", " + python
}
