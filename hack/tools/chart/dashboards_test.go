package chart

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// theServer is the name of the server's objects.
const theServer = "test-heliostat-server"

// paged are options with which the page and the dashboards are served.
func paged(options ...string) []string {
	return slices.Concat(serving, withPage, []string{"--set", "server.tls.secretName=given"}, options)
}

// called returns the object of a type with a name.
func called[T metav1.Object](t *testing.T, name string, options ...string) T {
	t.Helper()
	for _, one := range of[T](t, options...) {
		if one.GetName() == name {
			return one
		}
	}
	t.Fatalf("there is no %T %s", *new(T), name)
	return *new(T)
}

// argsOf are the flags of the server, by their names.
func argsOf(t *testing.T, options ...string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, arg := range called[*appsv1.Deployment](t, theServer, options...).Spec.Template.Spec.Containers[0].Args {
		name, value, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		found[name] = value
	}
	return found
}

// origins are values, and what follows from them: two addresses, and the host names that lead to dashboards alone.
type origins struct{ set, page, dashboards, wildcard, hosts string }

// TestDashboards_HaveAnOriginOfTheirOwn: the page and what clusters serve are never one origin, and each has a Service.
func TestDashboards_HaveAnOriginOfTheirOwn(t *testing.T) {
	const inside = "https://test-heliostat-server.there.svc"
	for name, c := range map[string]origins{
		"of the Service":                {"server.replicas=2", inside, inside + ":8444", "", ""},
		"another port":                  {"server.url=https://a.example.com", "https://a.example.com", "https://a.example.com:8444", "", ""},
		"another port than a given one": {"server.url=https://a.example.com:9443", "https://a.example.com:9443", "https://a.example.com:8444", "", ""},
		"another host":                  {"server.url=https://a.example.com,server.dashboards.host=d.example.com", "https://a.example.com", "https://d.example.com", "", "d.example.com"},
		"a wildcard": {
			"server.url=https://a.example.com,server.dashboards.wildcard=ray.example.com", "https://a.example.com", "https://ray.example.com", "ray.example.com",
			"ray.example.com *.ray.example.com",
		},
		"a host and a wildcard": {
			"server.url=https://a.example.com,server.dashboards.host=d.example.com:444,server.dashboards.wildcard=ray.example.com", "https://a.example.com",
			"https://d.example.com:444", "ray.example.com", "d.example.com ray.example.com *.ray.example.com",
		},
	} {
		t.Run(name, func(t *testing.T) {
			args := argsOf(t, paged("--set", c.set)...)
			if args["page-url"] != c.page || args["dashboards-url"] != c.dashboards || args["dashboards-wildcard"] != c.wildcard {
				t.Errorf("the server is told %v", args)
			}
			led := paged("--set", c.set, "--set", "server.ingress.enabled=true")
			if c.hosts == "" {
				if text, err := Render(led...); err == nil {
					t.Errorf("an Ingress leads by ports: %d bytes", len(text))
				}
				return
			}
			checkIngresses(t, c, led)
		})
	}
	for _, bad := range []string{
		"server.url=https://a.example.com,server.dashboards.host=a.example.com", "server.ingress.enabled=true", "server.httpRoute.enabled=true",
	} {
		if text, err := Render(paged("--set", bad)...); err == nil {
			t.Errorf("%s is accepted and gives %d bytes", bad, len(text))
		}
	}
}

// checkIngresses holds both Ingresses against their Services and the host names.
func checkIngresses(t *testing.T, want origins, options []string) {
	t.Helper()
	ingress := called[*networkingv1.Ingress](t, theServer+"-dashboards", options...)
	var hosts []string
	for _, rule := range ingress.Spec.Rules {
		hosts = append(hosts, rule.Host)
	}
	service := called[*corev1.Service](t, theServer+"-dashboards", options...)
	to := ingress.Spec.Rules[0].HTTP.Paths[0].Backend.Service
	if strings.Join(hosts, " ") != want.hosts || !slices.Equal(ingress.Spec.TLS[0].Hosts, hosts) || to.Name != service.Name || to.Port.Name != service.Spec.Ports[0].Name {
		t.Errorf("the Ingress leads %v to %v", ingress.Spec, to)
	}
	if page := called[*networkingv1.Ingress](t, theServer, options...).Spec.Rules; len(page) != 1 || "https://"+page[0].Host != want.page {
		t.Errorf("the page's Ingress is for %v", page)
	}
}

// TestDashboards_AreServedOnTheirPort: Services, policy and flags are about the port that the container opens.
func TestDashboards_AreServedOnTheirPort(t *testing.T) {
	options := paged(withHosts...)
	container := called[*appsv1.Deployment](t, theServer, options...).Spec.Template.Spec.Containers[0]
	at := slices.IndexFunc(container.Ports, func(p corev1.ContainerPort) bool { return p.Name == "dashboards" })
	if at < 0 || !strings.HasSuffix(argsOf(t, options...)["dashboards-address"], fmt.Sprintf(":%d", container.Ports[at].ContainerPort)) {
		t.Fatalf("the container opens %v, the server is told %v", container.Ports, container.Args)
	}
	for name, number := range map[string]int32{theServer: 8444, theServer + "-dashboards": 443} {
		service := called[*corev1.Service](t, name, options...)
		if !slices.ContainsFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == number && p.TargetPort.StrVal == "dashboards" }) {
			t.Errorf("the Service %s has the ports %v", name, service.Spec.Ports)
		}
	}
	policy := called[*networkingv1.NetworkPolicy](t, theServer, append(options, "--set-json", `networkPolicy.egress=[{}]`)...).Spec
	if !slices.ContainsFunc(policy.Ingress[0].Ports, func(p networkingv1.NetworkPolicyPort) bool { return p.Port.IntVal == container.Ports[at].ContainerPort }) {
		t.Errorf("callers reach %v", policy.Ingress[0])
	}
	if proxies := policy.Egress[1]; proxies.To[0].PodSelector.MatchExpressions[0].Key != "heliostat.dev/cluster" || proxies.To[0].NamespaceSelector == nil || len(proxies.Ports) > 0 {
		t.Errorf("the server reaches the proxies of services by %+v", proxies)
	}
}

// TestDashboards_HaveMemoryForWebSockets, unless another limit is given.
func TestDashboards_HaveMemoryForWebSockets(t *testing.T) {
	for given, want := range map[string]string{"server.verbosity=0": "768Mi", "server.resources.limits.memory=2Gi": "2Gi"} {
		container := called[*appsv1.Deployment](t, theServer, paged("--set", given)...).Spec.Template.Spec.Containers[0]
		if got := container.Resources; got.Limits.Memory().String() != want || got.Requests.Cpu().IsZero() {
			t.Errorf("with %s they are %v", given, got)
		}
	}
}

// TestDashboards_AreLedToByAGateway that speaks TLS to the server, and believes whose certificate it shows.
func TestDashboards_AreLedToByAGateway(t *testing.T) {
	given := []string{"--set", "server.tls.secretName=given"}
	for name, c := range map[string]struct {
		options []string
		system  string
		refs    []string
	}{
		"that the chart made":     {nil, "", []string{theServer + "-tls"}},
		"of public authorities":   {given, "System", nil},
		"of the user's authority": {append(slices.Clone(given), "--set", "server.httpRoute.certificateAuthority=ours"), "", []string{"ours"}},
	} {
		t.Run(name, func(t *testing.T) {
			options := slices.Concat(serving, withRoute, c.options)
			for at, service := range []string{theServer, theServer + "-dashboards"} {
				route, policy := called[*HTTPRoute](t, service, options...), called[*BackendTLSPolicy](t, service, options...)
				if host := []string{"a.example.com", "c.example.com"}[at]; !slices.Equal(route.Spec.Hostnames, []string{host}) || route.Spec.Rules[0].BackendRefs[0] != (BackendRef{service, 443}) {
					t.Errorf("the route is %+v", route.Spec)
				}
				var refs []string
				for _, ref := range policy.Spec.Validation.CACertificateRefs {
					refs = append(refs, ref.Name)
				}
				if policy.Spec.TargetRefs[0] != (ObjectRef{Kind: "Service", Name: service, SectionName: "https"}) || policy.Spec.Validation.Hostname != "a.example.com" ||
					policy.Spec.Validation.WellKnownCACertificates != c.system || !slices.Equal(refs, c.refs) {
					t.Errorf("the policy is %+v", policy.Spec)
				}
			}
		})
	}
}

// TestDashboards_GatewayHasAnAuthority: the operator fills the ConfigMap that the policy names.
func TestDashboards_GatewayHasAnAuthority(t *testing.T) {
	if one := called[*corev1.ConfigMap](t, theServer+"-tls", slices.Concat(withoutCRDs, serving, withRoute)...); one.Data != nil {
		t.Errorf("an upgrade would overwrite it with %v", one.Data)
	}
}

// TestDashboards_SealSessionsByASecret: one that the chart makes, or one that is given.
func TestDashboards_SealSessionsByASecret(t *testing.T) {
	secret := called[*corev1.Secret](t, theServer+"-session", paged()...)
	if keys := strings.Fields(string(secret.Data["keys"])); len(keys) != 1 || len(keys[0]) < 64 {
		t.Errorf("the keys are %q, want one of 48 random bytes", secret.Data["keys"])
	}
	for name, options := range map[string][]string{secret.Name: paged(), "theirs": paged("--set", "server.session.secretName=theirs")} {
		pod := called[*appsv1.Deployment](t, theServer, options...).Spec.Template.Spec
		if at := volumeOf(pod, "session"); at == nil || at.Secret.SecretName != name || argsOf(t, options...)["session-key-file"] != mountOf(pod, "session")+"/keys" {
			t.Errorf("the pod mounts %v at %s", at, mountOf(pod, "session"))
		}
	}
	if made := of[*corev1.Secret](t, paged("--set", "server.session.secretName=theirs")...); len(made) > 0 {
		t.Errorf("beside a given Secret there is %s", made[0].Name)
	}
}

// TestDashboards_TellThePage how people sign in, and what it links to.
func TestDashboards_TellThePage(t *testing.T) {
	options := paged("--set-json", `server.signIn.oidc={"issuer":"https://sso.example.com","clientID":"h","secretName":"theirs","scopes":["groups"]}`,
		"--set-json", `server.links=[{"name":"Grafana","urlTemplate":"https://g.example.com/?var-ns=${namespace}","kind":"ClusterJob"}]`,
		"--set", "server.frameAncestors={https://k.example.com,https://b.example.com}")
	pod := called[*appsv1.Deployment](t, theServer, options...).Spec.Template.Spec
	args, files := argsOf(t, options...), called[*corev1.ConfigMap](t, theServer+"-page", options...)
	if at := volumeOf(pod, "page"); at == nil || at.ConfigMap.Name != files.Name || args["sign-in-file"] != mountOf(pod, "page")+"/sign-in.yaml" ||
		args["links-file"] != mountOf(pod, "page")+"/links.yaml" || args["frame-ancestors"] != "https://k.example.com,https://b.example.com" {
		t.Errorf("the server is told %v, of %v", args, at)
	}
	var signIn struct{ OIDC map[string]any }
	type link struct{ Name, Kind, URLTemplate string }
	var links []link
	if err := errors.Join(yaml.UnmarshalStrict([]byte(files.Data["sign-in.yaml"]), &signIn), yaml.UnmarshalStrict([]byte(files.Data["links.yaml"]), &links)); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"issuer": "https://sso.example.com", "clientID": "h", "scopes": []any{"groups"}, "clientSecretFile": mountOf(pod, "oidc") + "/client-secret",
	}
	if !reflect.DeepEqual(signIn.OIDC, want) {
		t.Errorf("people sign in by %v, want %v", signIn.OIDC, want)
	}
	if len(links) != 1 || links[0] != (link{"Grafana", "ClusterJob", "https://g.example.com/?var-ns=${namespace}"}) {
		t.Errorf("the page links to %v", links)
	}
	if at := volumeOf(pod, "oidc"); at == nil || at.Secret.SecretName != "theirs" {
		t.Errorf("the secret is in %v", at)
	}
}

// TestDashboards_RefuseSignInsThatCannotWork before anything is installed.
func TestDashboards_RefuseSignInsThatCannotWork(t *testing.T) {
	oidc := "server.signIn.oidc.issuer=https://sso.example.com,server.signIn.oidc.clientID=heliostat"
	if text, err := Render(append(slices.Clone(impersonating), paged("--set", oidc)...)...); err != nil {
		t.Errorf("an issuer that the server believes is refused: %v: %d bytes", err, len(text))
	}
	for name, options := range map[string][]string{
		"an issuer alone":        paged("--set", "server.signIn.oidc.issuer=https://sso.example.com"),
		"an issuer of no caller": append(slices.Clone(impersonating), paged("--set", strings.ReplaceAll(oidc, "sso", "other"))...),
		"another audience":       append(slices.Clone(impersonating), paged("--set", strings.ReplaceAll(oidc, "=heliostat", "=other"))...),
	} {
		if text, err := Render(options...); err == nil {
			t.Errorf("%s is accepted and gives %d bytes", name, len(text))
		}
	}
}

// TestDashboards_AreReadByWhomAnAdministratorBinds: no role of Kubernetes grows by it, and it reads alone.
func TestDashboards_AreReadByWhomAnAdministratorBinds(t *testing.T) {
	role := called[*rbacv1.ClusterRole](t, "test-heliostat-dashboards-read", paged()...)
	if want, have := []string{"heliostat.dev computeclusters/proxy get", "heliostat.dev clusterservices/proxy get"}, rightsText(role.Rules); !slices.Equal(have, want) {
		t.Errorf("it has %v, want %v", have, want)
	}
	for label := range role.Labels {
		if strings.HasPrefix(label, "rbac.authorization.k8s.io/") {
			t.Errorf("it is added to others by %s", label)
		}
	}
	view := called[*rbacv1.ClusterRole](t, "test-heliostat-view", paged()...)
	for _, right := range rightsText(view.Rules) {
		if strings.Contains(right, "/proxy") {
			t.Errorf("view has %s", right)
		}
	}
}

func volumeOf(pod corev1.PodSpec, name string) *corev1.Volume {
	for i := range pod.Volumes {
		if pod.Volumes[i].Name == name {
			return &pod.Volumes[i]
		}
	}
	return nil
}

func mountOf(pod corev1.PodSpec, name string) string {
	for _, mount := range pod.Containers[0].VolumeMounts {
		if mount.Name == name {
			return mount.MountPath
		}
	}
	return ""
}
