package live

import (
	"fmt"
	"slices"
	"strings"
)

// What specs of the dashboard proxy report and make accept reads: labels of specs, and names of entries.
const (
	// RayClientLabel is of the specs of Ray's own client, and RayClientEntry of what a release of it did.
	RayClientLabel, RayClientEntry = "ray-client", "Ray's client through the proxy"
	// RayPagesLabel is of the specs of Ray's dashboard in a browser, and RayPagesEntry of what its pages did.
	RayPagesLabel, RayPagesEntry = "ray-pages", "pages of Ray's dashboard"
	// ProxiedServiceLabel is of the spec of a service through the proxy, and ProxiedServiceEntry of its requests.
	ProxiedServiceLabel, ProxiedServiceEntry = "proxied-service", "requests through the proxy"
	// ProxiedPeerLabel is of the spec of a service that lets in the server alone.
	ProxiedPeerLabel = "proxied-peer"
)

// PromisedUploadMemory is by how many MiB the memory of a server may grow for an upload of any size.
const PromisedUploadMemory = 8

// RayClient is what a release of Ray's client did through the proxy.
type RayClient struct {
	Release string `json:"release"`
	// UploadMB is the size of a working directory, and GrewMiB by how much the memory of a server grew for it, each time.
	UploadMB float64   `json:"uploadMB"`
	GrewMiB  []float64 `json:"grewMiB"`
	// Lines of a job were followed while each server was replaced; IsWhole: each came once, in order.
	Lines   int  `json:"lines"`
	IsWhole bool `json:"isWhole"`
	// Refusals are what the client printed, by why it was refused.
	Refusals map[string]string `json:"refusals"`
}

// Grew is the most by which the memory of a server grew.
func (r RayClient) Grew() float64 { return slices.Max(append([]float64{0}, r.GrewMiB...)) }

// String is what was seen, in one line.
func (r RayClient) String() string {
	whole := "each once"
	if !r.IsWhole {
		whole = "not each once"
	}
	return fmt.Sprintf("Ray %s: %.0f MB uploaded, memory grew by %.1f MiB at most; %d lines followed while servers were replaced, %s; %d refusals with their text",
		r.Release, r.UploadMB, r.Grew(), r.Lines, whole, len(r.Refusals))
}

// RayPages is what the pages of Ray's dashboard did in a browser, by one way to separate origins.
type RayPages struct {
	// Way is port, host or wildcard, and At the address that the browser ended at.
	Way string `json:"way"`
	At  string `json:"at"`
	// Pages are those that were opened, each with what went wrong on it.
	Pages []RayPage `json:"pages"`
	// Own are the answers over 399 that the head gave as well when it was asked without the proxy: code and path below At.
	Own []string `json:"own"`
}

// RayPage is one page.
type RayPage struct {
	Path  string   `json:"path"`
	Wrong []string `json:"wrong"`
}

// Answers returns the answers over 399 of all pages, each once: code and path below At.
func (r RayPages) Answers() []string {
	var all []string
	for _, page := range r.Pages {
		for _, one := range page.Wrong {
			if code, url, ok := strings.Cut(one, " "); ok && len(code) == 3 {
				all = append(all, code+" "+strings.TrimPrefix(url, r.At))
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Wrong returns what went wrong on pages, but for answers of the head's own, and the line that chromium writes to the console for each.
func (r RayPages) Wrong() []string {
	var all []string
	for _, page := range r.Pages {
		lines := map[string]int{}
		for _, one := range page.Wrong {
			if r.isOwn(one) {
				lines[consoleOf(one[:3])]++
			}
		}
		for _, one := range page.Wrong {
			line, _, _ := strings.Cut(one, " (")
			switch {
			case r.isOwn(one):
			case lines[line] > 0:
				lines[line]--
			default:
				all = append(all, page.Path+": "+one)
			}
		}
	}
	return all
}

// consoleOf returns what chromium writes to the console for an answer with a code.
func consoleOf(code string) string {
	return "console: Failed to load resource: the server responded with a status of " + code
}

func (r RayPages) isOwn(text string) bool {
	code, url, _ := strings.Cut(text, " ")
	return slices.Contains(r.Own, code+" "+strings.TrimPrefix(url, r.At))
}

// String is what was seen, in one line.
func (r RayPages) String() string {
	own := "no answer over 399"
	if len(r.Own) > 0 {
		own = "as the head answers without the proxy: " + strings.Join(r.Own, ", ")
	}
	return fmt.Sprintf("by %s: %d pages, %d failures; %s", r.Way, len(r.Pages), len(r.Wrong()), own)
}

// ProxiedService is what became of requests to a service through the proxy while it was upgraded.
type ProxiedService struct {
	Sent   int            `json:"sent"`
	Failed int            `json:"failed"`
	Sorts  map[string]int `json:"sorts"`
	// DirectSent and DirectFailed are of the same requests, which other clients sent to the service itself at the same time.
	DirectSent   int `json:"directSent"`
	DirectFailed int `json:"directFailed"`
	// Versions that answered, and upgrades that were made meanwhile.
	Versions int `json:"versions"`
	Upgrades int `json:"upgrades"`
}

// String is what was seen, in one line.
func (p ProxiedService) String() string {
	return fmt.Sprintf("%d of %d requests failed (sent: %v) through %d upgrades, answered by %d versions; without the proxy %d of %d",
		p.Failed, p.Sent, p.Sorts, p.Upgrades, p.Versions, p.DirectFailed, p.DirectSent)
}
