package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	osexec "os/exec"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/heliostat-dev/heliostat/tests/live"
)

// originWay is a way to separate origins, and where a browser finds the dashboard of a cluster then.
type originWay struct {
	name      string
	settings  []string
	dashboard func(namespace, name string) string
}

// originWays returns all of them.
func originWays() []originWay {
	below := func(origin string) func(namespace, name string) string {
		return func(namespace, name string) string { return origin + "/" + namespace + "/" + name + "/" }
	}
	return []originWay{
		{"port", nil, below("https://" + pageName + ":8444")},
		{"host", []string{"--set", "server.dashboards.host=" + clustersName}, below("https://" + clustersName)},
		{"wildcard", []string{"--set", "server.dashboards.wildcard=" + wildcardName}, func(namespace, name string) string {
			return "https://" + name + "--" + namespace + "." + wildcardName + "/"
		}},
	}
}

// rules tells chromium where the names are.
func rules(ctx context.Context, way originWay) string {
	GinkgoHelper()
	text := fmt.Sprintf("MAP %s %s", pageName, clusterIP(ctx, serverName))
	if way.settings != nil {
		at := clusterIP(ctx, dashboardsName)
		text += fmt.Sprintf(", MAP %s %s, MAP %s %s, MAP *.%s %s", clustersName, at, wildcardName, at, wildcardName, at)
	}
	return text
}

// Ray's dashboard, as a person opens it.
var _ = Describe("the dashboard of Ray in a browser", Ordered, Label(live.RayPagesLabel, live.AcceptLabel, localkubeLabel), func() {
	var demo *env
	var token string

	BeforeAll(func(ctx SpecContext) {
		withDashboards(ctx)
		demo = made(ctx, "demo", "clusters/workers.yaml", values{"CPU": "1", "Memory": "3Gi"})
		token = editor(ctx, demo.Namespace)
		head := demo.head(ctx)
		exec(ctx, &head, "python3", "-c", rendered("programs/hello.py", nil))
		exec(ctx, &head, "ray", "job", "submit", "--no-wait", "--", "python3", "-u", "-c", rendered("programs/busy.py", nil))
	}, NodeTimeout(2*limit))

	for _, way := range originWays() {
		It("opens each page without an error, by "+way.name, func(ctx SpecContext) {
			onHosts(ctx, way.settings...)
			serverPods(ctx, 1)
			bed, err := json.Marshal(map[string]string{
				"page": "https://" + pageName, "dashboard": way.dashboard(demo.Namespace, demo.Name), "token": token,
				"hosts": rules(ctx, way), "pictures": os.Getenv("HELIOSTAT_PICTURES"),
			})
			Expect(err).NotTo(HaveOccurred())
			browser := osexec.CommandContext(ctx, "node", "dashboard.mjs")
			browser.Env = append(os.Environ(), "HELIOSTAT_BED="+string(bed))
			browser.Stderr = GinkgoWriter
			out, err := browser.Output()
			Expect(err).NotTo(HaveOccurred(), "node, chromium and the packages of web are needed: make deps web")
			seen := live.RayPages{Way: way.name}
			Expect(json.Unmarshal(out, &seen)).To(Succeed(), string(out))
			seen.Own = answersOfHead(ctx, demo, seen.Answers())
			GinkgoWriter.Printf("%s\n%s\n", seen, out)
			AddReportEntry(live.RayPagesEntry, seen, ReportEntryVisibilityAlways)
			Expect(seen.At).To(HavePrefix(way.dashboard(demo.Namespace, demo.Name)))
			Expect(seen.Wrong()).To(BeEmpty())
		}, SpecTimeout(3*limit))
	}
})

// answersOfHead asks a head without the proxy, and returns those of the answers that it gives as well: code and path.
func answersOfHead(ctx context.Context, e *env, answers []string) []string {
	GinkgoHelper()
	var paths []string
	for _, one := range answers {
		paths = append(paths, one[len("404 "):])
	}
	asked, err := json.Marshal(paths)
	Expect(err).NotTo(HaveOccurred())
	head := e.head(ctx)
	var codes []int
	decode(exec(ctx, &head, "python3", "-c", rendered("programs/ask-head.py", nil), string(asked)), &codes)
	var same []string
	for i, one := range answers {
		if one == fmt.Sprintf("%d %s", codes[i], paths[i]) {
			same = append(same, one)
		}
	}
	return same
}
