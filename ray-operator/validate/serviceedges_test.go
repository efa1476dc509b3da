package validate_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/admission/corpus"
	"github.com/heliostat-dev/heliostat/ray-operator/validate"
)

func rulesOfServices() []validate.Rule {
	return slices.Concat(validate.Rules(), validate.ServiceRules())
}

// application is one of a name, with more fields.
func application(name, more string) string {
	return fmt.Sprintf(`{"name":%[1]q,"route_prefix":"/%[1]s","import_path":"a:b"%[2]s}`, name, more)
}

// applications are so many good ones, and then others.
func applications(good int, others ...string) string {
	var all []string
	for i := range good {
		all = append(all, application(fmt.Sprint("a", i), ""))
	}
	return `{"applications":[` + strings.Join(append(all, others...), ",") + `]}`
}

// deployments are so many good ones of an application, and then others.
func deployments(good int, others ...string) string {
	var all []string
	for i := range good {
		all = append(all, fmt.Sprintf(`{"name":"d%d"}`, i))
	}
	return applications(0, application("a", `,"deployments":[`+strings.Join(append(all, others...), ",")+`]`))
}

// deployment is a configuration with a single deployment of these fields.
func deployment(fields string) string { return deployments(0, `{"name":"d",`+fields+`}`) }

// option is a configuration with an application and an option of a group.
func option(group, name string, value any) string {
	return strings.TrimSuffix(applications(1), "}") + fmt.Sprintf(`,%q:{%q:%v}}`, group, name, value)
}

const (
	ofDeployment = "applications[0].deployments[0]."
	gang         = ofDeployment + "gang_scheduling_config"
	gangOfTwo    = `"gang_scheduling_config":{"gang_size":2},`
)

// configurations are those of a service, the rule that they are about, and the field below serveConfig that breaks it.
var configurations = map[string]struct{ rule, want, config string }{
	"as many applications as may be": {"serve-too-many", "", applications(64)},
	"one application more":           {"serve-too-many", "applications", applications(65)},
	"each of as many as may be":      {"serve-import", "applications[63].import_path", applications(63, `{"name":"b"}`)},
	"none of more applications":      {"serve-import", "", applications(64, `{"name":"b"}`)},
	"as many deployments as may be":  {"serve-too-many", "", deployments(256)},
	"one deployment more":            {"serve-too-many", "applications", deployments(257)},
	"each of as many deployments":    {"serve-name", "applications[0].deployments[255].name", deployments(255, "{}")},
	"none of more deployments":       {"serve-name", "", deployments(256, "{}")},

	"alike with the application's number": {"serve-deployment-twice", "", alikeWithNumbers()},

	"a gang's multiple":                  {"serve-gang-size", "", deployment(gangOfTwo + `"num_replicas":4`)},
	"no multiple":                        {"serve-gang-size", gang, deployment(gangOfTwo + `"num_replicas":3`)},
	"a least that is no multiple":        {"serve-gang-size", gang, scaledGang("auto", "min_replicas")},
	"a first number that is no multiple": {"serve-gang-size", gang, scaledGang("auto", "initial_replicas")},
	"a most that is no multiple":         {"serve-gang-size", gang, scaledGang("auto", "max_replicas")},
	"a most beside a fixed number":       {"serve-gang-size", "", scaledGang(4, "max_replicas")},

	"the largest count":  {"serve-count", "", deployment(`"max_ongoing_requests":2147483647`)},
	"one more than that": {"serve-count", ofDeployment + "max_ongoing_requests", deployment(`"max_ongoing_requests":2147483648`)},
	"less than none":     {"serve-percent", ofDeployment + "max_surge_percent", deployment(`"max_surge_percent":-1`)},
	"all at once":        {"serve-fraction", "", deployment(`"rolling_update_percentage":1`)},
	"more than all": {
		"serve-fraction", ofDeployment + "rolling_update_percentage", deployment(`"rolling_update_percentage":1.5`),
	},

	"the largest number":   {"serve-whole", "", option("http_options", "keep_alive_timeout_s", 2147483647)},
	"a larger one":         {"serve-whole", "http_options.keep_alive_timeout_s", option("http_options", "keep_alive_timeout_s", 2147483648)},
	"the first port":       {"serve-port", "", option("http_options", "port", 1)},
	"no port":              {"serve-port", "http_options.port", option("http_options", "port", 0)},
	"the last port":        {"serve-port", "", option("http_options", "port", 65535)},
	"all samples":          {"serve-ratio", "", option("tracing_config", "sampling_ratio", 1)},
	"less than no samples": {"serve-ratio", "tracing_config.sampling_ratio", option("tracing_config", "sampling_ratio", -0.5)},
	"the least level":      {"serve-log-level", "", option("logging_config", "log_level", 0)},
	"the highest level":    {"serve-log-level", "", option("logging_config", "log_level", 50)},
	"a level above that":   {"serve-log-level", "logging_config.log_level", option("logging_config", "log_level", 60)},
}

// alikeWithNumbers are deployments whose names look alike behind the numbers of their applications: 1 and 0d, 10 and d.
func alikeWithNumbers() string {
	var all []string
	for i := range 11 {
		name := "0d"
		if i == 10 {
			name = "d"
		}
		all = append(all, application(fmt.Sprint("a", i), `,"deployments":[{"name":"`+name+`"}]`))
	}
	return applications(0, all...)
}

// scaledGang has a number of 3 for autoscaling.
func scaledGang(replicas any, number string) string {
	text, _ := json.Marshal(replicas)
	return deployment(fmt.Sprintf(`%s"num_replicas":%s,"autoscaling_config":{%q:3}`, gangOfTwo, text, number))
}

func TestService_AtTheEdgesOfRules(t *testing.T) {
	for name, test := range configurations {
		service, want := corpus.GoodService(), test.want
		if want != "" {
			want = "spec.serveConfig." + want
		}
		service.Spec.ServeConfig.Raw = []byte(test.config)
		if have := placesOf(t, rulesOfServices(), judge(t, "ClusterService", service), test.rule); have != want {
			t.Errorf("%s breaks %s at %q, want %q", name, test.rule, have, want)
		}
	}
}

func TestServiceUpgrade_StepsWithinTheSurge(t *testing.T) {
	for step, want := range map[int32]string{100: "", 101: "spec.upgradeStrategy.surge.stepPercent"} {
		service := corpus.GoodService()
		service.Spec.UpgradeStrategy = &v1beta1.ServiceUpgradeStrategy{Surge: &v1beta1.Surge{StepPercent: &step}}
		if have := placesOf(t, rulesOfServices(), judge(t, "ClusterService", service), "service-upgrade-step"); have != want {
			t.Errorf("a step of %d is refused at %q, want %q", step, have, want)
		}
	}
}

func TestServiceRules_NameTheirFields(t *testing.T) {
	for id, want := range map[string]string{
		"serve-text-list": "spec.serveConfig.**.grpc_servicer_functions, additional_log_standard_attrs",
		"serve-port":      "spec.serveConfig.**.port",
	} {
		at := slices.IndexFunc(validate.ServiceRules(), func(r validate.Rule) bool { return r.ID == id })
		if have := validate.ServiceRules()[at].Field; have != want {
			t.Errorf("%s is about %s, want %s", id, have, want)
		}
	}
}
