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
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/apiserver/spelling"
	"github.com/heliostat-dev/heliostat/cli/about"
	"github.com/heliostat-dev/heliostat/cli/away"
	"github.com/heliostat-dev/heliostat/cli/bundle"
	"github.com/heliostat-dev/heliostat/cli/cluster"
	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/convert"
	"github.com/heliostat-dev/heliostat/cli/history"
	"github.com/heliostat-dev/heliostat/cli/job"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/logs"
	"github.com/heliostat-dev/heliostat/cli/object"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/cli/overview"
	"github.com/heliostat-dev/heliostat/cli/service"
	"github.com/heliostat-dev/heliostat/cli/session"
	"github.com/heliostat-dev/heliostat/cli/tune"
)

// Settings are what the program knows of where it runs.
type Settings struct {
	genericiooptions.IOStreams
	Clock clock.WithTicker
	// Width returns how many columns the terminal of standard error has; nil where it is none.
	Width func() int
	// CanAsk: standard input is a terminal.
	CanAsk bool
	// Environ are the variables of this program, for those that it runs.
	Environ []string
	// Connect makes the objects of the API server; nil is by the kubeconfig.
	Connect func() (*kube.Objects, error)
	// Forward makes connections to ports of pods; nil is by the kubeconfig.
	Forward console.Forward
}

// Run runs the command that the arguments name, and returns the exit code.
func Run(ctx context.Context, args []string, settings Settings) int {
	root := Command(settings)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil && err.Error() != "" {
		fmt.Fprintln(settings.ErrOut, "error:", printable(err))
	}
	return outcome.Code(err)
}

// printable has no text that a terminal obeys; its lines stay lines.
func printable(err error) string {
	lines := strings.Split(err.Error(), "\n")
	for i := range lines {
		lines[i] = console.Printable(lines[i])
	}
	return strings.Join(lines, "\n")
}

// Command returns the program as a command with all others below it.
func Command(settings Settings) *cobra.Command {
	access := kubeconfig()
	c := &console.Console{IOStreams: settings.IOStreams, Access: access, Clock: settings.Clock, Width: settings.Width,
		CanAsk: settings.CanAsk, Environ: settings.Environ, Connect: settings.Connect, Forward: settings.Forward,
		Server: console.ServerOf(settings.Environ)}
	if c.Connect == nil {
		c.Connect = sync.OnceValues(func() (*kube.Objects, error) { return kube.Connect(access) })
	}
	if c.Forward == nil {
		c.Forward = forward(access)
	}
	c.ReadLog, c.StreamLog = readLog(access), streamLog(access)
	c.Resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
		return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	}
	root := console.Group("heliostat", "Ray clusters, jobs, services and schedules on Kubernetes, from a kubeconfig alone")
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetIn(settings.In)
	root.SetOut(settings.Out)
	root.SetErr(settings.ErrOut)
	root.SetFlagErrorFunc(badFlag)
	access.AddFlags(root.PersistentFlags())
	root.PersistentFlags().BoolVarP(&c.IsQuiet, "quiet", "q", false, "print only data and errors")
	root.AddCommand(bundle.Command(c), convert.Command(access, settings.IOStreams), history.Command(c), job.Command(c), service.Command(c))
	for _, commands := range [][]*cobra.Command{about.Commands(c), cluster.Commands(c), logs.Commands(c), tune.Commands(c),
		object.Commands(c), overview.Commands(c), session.Commands(c)} {
		root.AddCommand(commands...)
	}
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, one := range root.Commands() {
		switch one.Name() {
		case "help":
			one.Args = knownTopic
		case "completion":
			one.Args, one.RunE = console.UnknownCommand, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
	return root
}

// knownTopic refuses help about a command that is not there.
func knownTopic(cmd *cobra.Command, args []string) error {
	found, rest, err := cmd.Root().Find(args)
	if err != nil || !found.HasSubCommands() {
		return err
	}
	return console.UnknownCommand(found, rest)
}

// forward returns a way to ports of pods, by the kubeconfig that the flags name when it is needed.
func forward(access *genericclioptions.ConfigFlags) console.Forward {
	return func(ctx context.Context, pod types.NamespacedName, port int) (net.Conn, error) {
		config, err := kube.ReadConfig(access)
		if err != nil {
			return nil, err
		}
		return away.Forward(config)(ctx, pod, port)
	}
}

// readLog returns a way to logs of containers, by the kubeconfig that the flags name when it is needed.
func readLog(access *genericclioptions.ConfigFlags) console.ReadLog {
	return func(ctx context.Context, of console.Container, isPrevious bool, lines int64) (string, error) {
		config, err := kube.ReadConfig(access)
		if err != nil {
			return "", err
		}
		return away.ReadLog(config)(ctx, of, isPrevious, lines)
	}
}

// streamLog returns a way to whole logs of containers, by the kubeconfig that the flags name when it is needed.
func streamLog(access *genericclioptions.ConfigFlags) console.StreamLog {
	return func(ctx context.Context, of console.Container, after time.Time, isFollowed bool) (io.ReadCloser, error) {
		config, err := kube.ReadConfig(access)
		if err != nil {
			return nil, err
		}
		return away.StreamLog(config)(ctx, of, after, isFollowed)
	}
}

// kubeconfig are kubectl's flags for who asks which API server. The rest of kubectl's would let a command line hold a
// credential.
func kubeconfig() *genericclioptions.ConfigFlags {
	access := genericclioptions.NewConfigFlags(true)
	access.APIServer, access.BearerToken, access.Username, access.Password = nil, nil, nil, nil
	access.CacheDir, access.ClusterName, access.DisableCompression = nil, nil, nil // nothing is cached here
	access.CertFile, access.KeyFile, access.CAFile, access.Insecure, access.TLSServerName = nil, nil, nil, nil, nil
	return access
}

func usage(text string) error { return &outcome.Error{Code: outcome.Usage, Err: errors.New(text)} }

// badFlag says what is wrong with a flag, and what was probably meant.
func badFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var bad *pflag.InvalidValueError
	var empty *pflag.ValueRequiredError
	switch {
	case errors.As(err, &bad):
		return usage(fmt.Sprintf("--%s %q is no %s", bad.GetFlag().Name, bad.GetValue(), describe(bad.GetFlag().Value.Type())))
	case errors.As(err, &empty):
		return usage(fmt.Sprintf("--%s lacks its value; see %s --help", empty.GetFlag().Name, cmd.CommandPath()))
	case !errors.As(err, &unknown):
		return &outcome.Error{Code: outcome.Usage, Err: err}
	}
	if name := unknown.GetSpecifiedName(); name != "" && strings.Trim(name, "0123456789") == "" {
		return usage(fmt.Sprintf("-%s is no flag, and no number is negative here; give 0 or more", name))
	}
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, "--"+f.Name) })
	name := "--" + strings.TrimLeft(unknown.GetSpecifiedName(), "-")
	return usage(fmt.Sprintf("%s has no such flag; %s", cmd.CommandPath(), spelling.Remedy(name, known)))
}

// describe returns what a value of a type of flags is, and how to write one.
func describe(kind string) string {
	switch kind {
	case "duration":
		return "duration; write one such as 30s, 10m or 8h"
	case "int", "int32", "int64":
		return "whole number; write one such as 4"
	case "float64":
		return "number; write one such as 0.5"
	case "bool":
		return "truth value; write true or false"
	}
	return kind
}
