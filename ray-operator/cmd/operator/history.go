package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/heliostat-dev/heliostat/history/redact"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/app"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/servercert"
	"github.com/heliostat-dev/heliostat/ray-operator/validate"
	"github.com/heliostat-dev/heliostat/ray-operator/yaml"
)

// leastKeepFor is the shortest time that a file is kept, as spec.history.keepFor has it.
const leastKeepFor = time.Hour

// historyFlags are what is given about history.
type historyFlags struct {
	archivers, hosts, labels string
	keep, size, redact       string
	keepFor, maxKeepFor      time.Duration
}

func (h *historyFlags) define(set *flag.FlagSet, cfg *app.Config) {
	set.StringVar(&h.archivers, "history-archivers", "", "comma-separated addresses (host:port) of the archiver's replicas; empty without history")
	set.StringVar(&h.labels, "history-labels", "", "comma-separated labels (key=value) that select the archiver's pods in NetworkPolicies")
	set.StringVar(&cfg.HistoryCertificates, "history-certificates", "", "beginning of the names of the Secrets NAME-authority, NAME-archiver and NAME-server in the operator's namespace, whose certificates the operator renews")
	set.StringVar(&h.hosts, "history-hosts", "", "comma-separated names and addresses of the archiver's certificate")
	set.StringVar(&h.keep, "history-keep", string(v1beta1.HistoryOutputs), "what is kept of clusters whose spec.history.keep is empty: Outputs or Records")
	set.DurationVar(&h.keepFor, "history-keep-for", 720*time.Hour, "how long files are kept after their last byte, of clusters whose spec.history.keepFor is empty")
	set.DurationVar(&h.maxKeepFor, "history-max-keep-for", 8760*time.Hour, "the longest spec.history.keepFor")
	set.StringVar(&h.size, "history-size", "", "size of the collector's container in pods of clusters that give none, as JSON of spec.history.size; empty for the operator's own")
	set.StringVar(&h.redact, "history-redact", "", "JSON list of expressions (RE2) whose matches collectors replace in what they send; empty for none")
}

// read reads what was given about history. Without archivers there is none.
func (h *historyFlags) read(into *app.Config) error {
	if h.archivers == "" {
		return nil
	}
	history := &pod.History{
		Keep: v1beta1.HistoryKeep(h.keep), KeepFor: metav1.Duration{Duration: h.keepFor}, MaxKeepFor: metav1.Duration{Duration: h.maxKeepFor},
	}
	for address := range strings.SplitSeq(h.archivers, ",") {
		if host, port, err := net.SplitHostPort(address); err != nil || host == "" || port == "" {
			return fmt.Errorf("read --history-archivers: %q is no address: write host:port", address)
		}
		history.Archivers = append(history.Archivers, address)
	}
	into.HistoryHosts = servercert.ReadHosts(h.hosts)
	if into.HistoryCertificates == "" || into.Namespace == "" || len(into.HistoryHosts.Names) == 0 {
		return errors.New("read --history-archivers: it needs --history-certificates, --namespace, and a name in --history-hosts: give all")
	}
	var err error
	if into.ArchiverLabels, err = labels.ConvertSelectorToLabelsMap(h.labels); err != nil {
		return fmt.Errorf("read --history-labels: %w: write key=value,key=value", err)
	}
	if history.Keep != v1beta1.HistoryOutputs && history.Keep != v1beta1.HistoryRecords {
		return fmt.Errorf("read --history-keep: %q is none: write Outputs or Records", h.keep)
	}
	if h.keepFor < leastKeepFor || h.keepFor > h.maxKeepFor {
		return fmt.Errorf("read --history-keep-for: %s is not from %s to --history-max-keep-for, which is %s", h.keepFor, leastKeepFor, h.maxKeepFor)
	}
	if err := h.readCollector(history); err != nil {
		return err
	}
	into.Installed.History = history
	return nil
}

// readCollector reads what collectors are given, by the rules of the field that it lies under.
func (h *historyFlags) readCollector(into *pod.History) error {
	if h.size != "" {
		if err := yaml.Unmarshal([]byte(h.size), yaml.Settings, &into.Size); err != nil {
			return fmt.Errorf("read --history-size: %w: write it as JSON, such as {\"memory\": \"64Mi\"}", err)
		}
	}
	probe := v1beta1.ComputeCluster{Spec: v1beta1.ComputeClusterSpec{RayVersion: "2.60.0", History: &v1beta1.History{Size: into.Size}}}
	probe.Name = "all"
	if err := validate.Cluster(&probe).ErrorList().ToAggregate(); err != nil {
		return fmt.Errorf("read --history-size: %w", err)
	}
	if h.redact != "" {
		if err := yaml.Unmarshal([]byte(h.redact), yaml.Settings, &into.Redact); err != nil {
			return fmt.Errorf("read --history-redact: %w: write a JSON list of expressions", err)
		}
	}
	if _, err := redact.New(nil, into.Redact); err != nil {
		return fmt.Errorf("read --history-redact: %w", err)
	}
	return nil
}
