// Command load asks a service at constant rates and counts what became of each request.
//
// In: flags, and lines of standard input, each of which is answered with a line of JSON:
// "phase NAME" counts what follows apart, "report" tells all so far, "end" ends. The end of
// the input, SIGTERM and the time of -for end it too; -for makes it need no input. Out: the
// report, one last line of JSON on standard output, once all requests were answered or have
// failed.
//
// It must never fail because requests do: that is what the report is for. A second signal
// ends it at once, without a report.
package main

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/heliostat-dev/heliostat/tests/internal/loadgen"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out io.Writer) error {
	plan, lasts, err := parse(args)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ledger := loadgen.NewLedger(time.Now())
	obeyed := make(chan error, 1)
	if lasts > 0 {
		var end context.CancelFunc
		ctx, end = context.WithTimeout(ctx, lasts)
		defer end()
	} else {
		go func() {
			obeyed <- ledger.Obey(in, out, time.Now)
			stop()
		}()
	}
	go func() {
		<-ctx.Done()
		stop() // so that a second signal ends the program
	}()
	if err := plan.Run(ctx, ledger); err != nil {
		return err
	}
	if err := json.NewEncoder(out).Encode(ledger.Report(time.Now())); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	select {
	case err := <-obeyed:
		return err
	default:
		return nil
	}
}

// parse reads the flags: what to send, and for how long if that is said.
func parse(args []string) (*loadgen.Plan, time.Duration, error) {
	plan := &loadgen.Plan{Rates: map[loadgen.Sort]float64{}}
	flags := flag.NewFlagSet("load", flag.ContinueOnError)
	flags.StringVar(&plan.URL, "url", "", "`URL` of the service, without a slash at its end")
	flags.StringVar(&plan.Host, "host", "", "`name` in the requests' header Host (default: that of the URL)")
	flags.StringVar(&plan.GRPC, "grpc-address", "", "`host:port` of gRPC calls")
	flags.IntVar(&plan.Connections, "connections", 8, "how many connections are kept, and how many channels")
	flags.DurationVar(&plan.Timeout, "timeout", 10*time.Second, "how long a request may take beyond what it asks for")
	flags.DurationVar(&plan.Longest, "longest", 15*time.Second, "long requests take from a third of it to all of it")
	flags.DurationVar(&plan.Session, "session", 20*time.Second, "how long a WebSocket session or a stream lasts")
	flags.DurationVar(&plan.Pace, "pace", 500*time.Millisecond, "how long after one of its messages or chunks comes the next")
	authority := flags.String("authority", "", "`file` with the authority of the service's certificate (default: the machine's)")
	token := flags.String("token-file", "", "`file` with a token that is sent as Authorization")
	lasts := flags.Duration("for", 0, "how long to send (default: until the input ends)")
	rates := map[loadgen.Sort]*float64{}
	for sort, what := range map[loadgen.Sort]string{
		loadgen.Fresh: "requests with a connection of their own", loadgen.Kept: "requests over kept connections", loadgen.Long: "requests that take long",
		loadgen.Stream: "requests that are answered in chunks", loadgen.WebSocket: "WebSocket sessions",
		loadgen.GRPC: "gRPC calls over kept channels", loadgen.GRPCStream: "gRPC calls over kept channels that are answered message by message",
	} {
		rates[sort] = flags.Float64(string(sort), 0, what+", a second")
	}
	if err := flags.Parse(args); err != nil {
		return nil, 0, fmt.Errorf("read the flags: %w", err)
	}
	if flags.NArg() > 0 {
		return nil, 0, fmt.Errorf("read the flags: there is no argument %q", flags.Arg(0))
	}
	for sort, rate := range rates {
		plan.Rates[sort] = *rate
	}
	if err := readFiles(plan, *authority, *token); err != nil {
		return nil, 0, err
	}
	return plan, *lasts, plan.Check()
}

// readFiles reads what would be seen on a command line, or is too long for it.
func readFiles(plan *loadgen.Plan, authority, token string) error {
	if authority != "" {
		text, err := os.ReadFile(authority)
		if err != nil {
			return fmt.Errorf("read the authority: %w", err)
		}
		plan.Authority = x509.NewCertPool()
		if !plan.Authority.AppendCertsFromPEM(text) {
			return fmt.Errorf("read the authority: %s holds no certificate in PEM", authority)
		}
	}
	if token != "" {
		text, err := os.ReadFile(token)
		if err != nil {
			return fmt.Errorf("read the token: %w", err)
		}
		plan.Token = strings.TrimSpace(string(text))
	}
	return nil
}
