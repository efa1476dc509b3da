// Package app puts the commands of heliostat together.
//
// In: arguments and the three streams. Out: the exit code. Data goes to standard output, everything else to standard
// error. A command gets a kubeconfig by the flags that all have in common, and makes its own clients of it.
// It must never end the process.
package app

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/heliostat-dev/heliostat/apiserver/spelling"
	"github.com/heliostat-dev/heliostat/cli/convert"
	"github.com/heliostat-dev/heliostat/cli/outcome"
)

// Run runs the command that the arguments name, and returns the exit code.
func Run(ctx context.Context, args []string, streams genericiooptions.IOStreams) int {
	root := command(streams)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil && err.Error() != "" {
		fmt.Fprintln(streams.ErrOut, "error:", err)
	}
	return outcome.Code(err)
}

func command(streams genericiooptions.IOStreams) *cobra.Command {
	access := kubeconfig()
	root := &cobra.Command{
		Use: "heliostat", Short: "Ray clusters, jobs and services on Kubernetes, from a kubeconfig alone",
		SilenceErrors: true, SilenceUsage: true,
		Args: unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	root.SetFlagErrorFunc(badFlag)
	access.AddFlags(root.PersistentFlags())
	root.AddCommand(convert.Command(access, streams))
	return root
}

// kubeconfig are kubectl's flags for who asks which API server. The rest of kubectl's would let a command line hold a
// credential.
func kubeconfig() *genericclioptions.ConfigFlags {
	access := genericclioptions.NewConfigFlags(true)
	access.APIServer, access.BearerToken, access.Username, access.Password = nil, nil, nil, nil
	access.CertFile, access.KeyFile, access.CAFile, access.Insecure, access.TLSServerName = nil, nil, nil, nil, nil
	return access
}

func usage(text string) error { return &outcome.Error{Code: outcome.Usage, Err: errors.New(text)} }

// unknownCommand says which command was probably meant.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var known []string
	for _, one := range cmd.Commands() {
		known = append(known, one.Name())
	}
	return usage("there is no such command; " + spelling.Remedy(args[0], known))
}

// badFlag says which flag was probably meant.
func badFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return &outcome.Error{Code: outcome.Usage, Err: err}
	}
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, "--"+f.Name) })
	name := "--" + strings.TrimLeft(unknown.GetSpecifiedName(), "-")
	return usage(fmt.Sprintf("%s has no such flag; %s", cmd.CommandPath(), spelling.Remedy(name, known)))
}
