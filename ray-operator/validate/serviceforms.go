package validate

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// shape is what some fields of Serve's form may hold.
type shape struct {
	// id, refused and remedy are those of its rule.
	id, refused, remedy string
	good                func(value any) bool
	// holds is an expression for good, of the value that v stands for.
	holds string
	// fields are those fields by the kind of the part that they are of. One that ends with '?'
	// may be null.
	fields map[string]string
}

// largest is the largest whole number that Ray takes where it names none.
const largest = math.MaxInt32

func isObject(value any) bool { _, ok := value.(map[string]any); return ok }

func isFlag(value any) bool { _, ok := value.(bool); return ok }

// isWhole tells a whole number within bounds.
func isWhole(value any, least, most float64) bool {
	number, ok := value.(float64)
	return ok && number >= least && number <= most && number == math.Trunc(number)
}

func isCount(value any) bool { return isWhole(value, 1, largest) }

// wholes tells whole numbers within bounds.
func wholes(least, most float64) func(any) bool {
	return func(value any) bool { return isWhole(value, least, most) }
}

// number tells numbers that are so.
func number(so func(number float64) bool) func(any) bool {
	return func(value any) bool {
		number, ok := value.(float64)
		return ok && so(number)
	}
}

// wholeOf is an expression for isWhole of the value that v stands for.
func wholeOf(v string, least, most int) string {
	return fmt.Sprintf("(%s && int(%[2]s) == %[2]s)", numberOf(v, ">= "+strconv.Itoa(least), "<= "+strconv.Itoa(most)), v)
}

func countOf(v string) string { return wholeOf(v, 1, largest) }

// numberOf is an expression for a number that is so.
func numberOf(v string, so ...string) string {
	all := fmt.Sprintf("(type(%[1]s) == int || type(%[1]s) == double)", v)
	for _, one := range so {
		all += " && " + v + " " + one
	}
	return "(" + all + ")"
}

// Parts of what is said of numbers.
const (
	unquoted = "give one, without quotation marks"
	takes    = "Ray Serve takes %s here"
)

// shapes are the forms that Ray Serve's own schema asks for, as far as a field is known.
var shapes = []shape{
	{
		id: "serve-object", refused: fmt.Sprintf(takes, "an object"), remedy: "write its fields as YAML, not as a string", good: isObject, holds: "type(v) == map",
		fields: map[string]string{
			partConfig:      "http_options grpc_options controller_options? logging_config? tracing_config?",
			partApplication: "runtime_env args autoscaling_policy? logging_config?",
			partDeployment: "ray_actor_options autoscaling_config? gang_scheduling_config? logging_config backpressure_config " +
				"user_config? request_router_config",
			"controller": "runtime_env?", "actor": "runtime_env resources", "autoscaling": "policy",
		},
	},
	{
		id: "serve-list", refused: fmt.Sprintf(takes, "a list of objects"), remedy: "begin each of them with '-', and write its fields below",
		good: func(value any) bool {
			entries, ok := value.([]any)
			return ok && !slices.ContainsFunc(entries, func(entry any) bool { return !isObject(entry) })
		},
		holds: "(type(v) == list && v.all(e, type(e) == map))",
		fields: map[string]string{
			partConfig: "applications", partApplication: "deployments", "actor": "fallback_strategy?",
			partDeployment: "placement_group_bundles placement_group_bundle_label_selector deployment_actors?",
		},
	},
	{
		id: "serve-text-list", refused: fmt.Sprintf(takes, "a list of texts"), remedy: "begin each of them with '-'",
		good: func(value any) bool { return areTexts(value, anyText) }, holds: "(type(v) == list && v.all(e, type(e) == string))",
		fields: map[string]string{"grpc": "grpc_servicer_functions", "logging": "additional_log_standard_attrs"},
	},
	{
		id: "serve-text", refused: fmt.Sprintf(takes, "a text"), remedy: "quote it", good: isText, holds: "type(v) == string",
		fields: map[string]string{
			"http":          "host root_path ssl_keyfile? ssl_certfile? ssl_keyfile_password? ssl_ca_certs?",
			partApplication: "name route_prefix? import_path", partDeployment: "name",
			"actor": "accelerator_type?", "logging": "logs_dir?", "tracing": "exporter_import_path",
		},
	},
	{
		id: "serve-texts", refused: fmt.Sprintf(takes, "an object of texts"), remedy: "quote numbers and booleans",
		good: func(value any) bool {
			texts, ok := value.(map[string]any)
			return ok && !slices.ContainsFunc(sorted(texts), func(key string) bool { return key == "" || !isText(texts[key]) })
		},
		holds:  "(type(v) == map && v.all(k, k != '' && type(v[k]) == string))",
		fields: map[string]string{"environment": "env_vars", "controllerEnvironment": "env_vars", "actor": "label_selector?"},
	},
	{
		id: "serve-flag", refused: fmt.Sprintf(takes, "true or false"), remedy: "write one of them, without quotes", good: isFlag, holds: "type(v) == bool",
		fields: map[string]string{
			"grpc": "enable_reflection", partApplication: "external_scaler_enabled", "logging": "enable_access_log", "tracing": "enabled",
		},
	},
	{
		id: "serve-port", refused: "a port must be a whole number from 1 to 65535", remedy: unquoted, good: wholes(1, 65535), holds: wholeOf("v", 1, 65535),
		fields: map[string]string{"http": "port", "grpc": "port"},
	},
	{
		id: "serve-count", refused: fmt.Sprintf(takes, "a whole number of 1 or more"), remedy: unquoted, good: isCount, holds: countOf("v"),
		fields: map[string]string{partDeployment: "max_ongoing_requests", "autoscaling": "max_replicas", "gang": "gang_size"},
	},
	{
		id: "serve-whole", refused: fmt.Sprintf(takes, "a whole number of 0 or more"), remedy: unquoted, good: wholes(0, largest), holds: wholeOf("v", 0, largest),
		fields: map[string]string{"http": "keep_alive_timeout_s", "autoscaling": "min_replicas initial_replicas?"},
	},
	{
		id: "serve-percent", refused: fmt.Sprintf(takes, "a whole number from 0 to 100"), remedy: unquoted, good: wholes(0, 100), holds: wholeOf("v", 0, 100),
		fields: map[string]string{partDeployment: "max_surge_percent"},
	},
	{
		id: "serve-per-node", refused: fmt.Sprintf(takes, "a whole number from 1 to 100"), remedy: unquoted, good: wholes(1, 100), holds: wholeOf("v", 1, 100),
		fields: map[string]string{partDeployment: "max_replicas_per_node"},
	},
	{
		id: "serve-not-negative", refused: fmt.Sprintf(takes, "a number of 0 or more"), remedy: unquoted,
		good: number(func(n float64) bool { return n >= 0 }), holds: numberOf("v", ">= 0"),
		fields: map[string]string{
			"http": "request_timeout_s?", "grpc": "request_timeout_s?", "actor": "num_cpus? num_gpus? memory?", "backpressure": "retry_after_s?",
			partDeployment: "graceful_shutdown_wait_loop_s graceful_shutdown_timeout_s",
			"autoscaling":  "downscale_delay_s downscale_to_zero_delay_s? upscale_delay_s",
		},
	},
	{
		id: "serve-positive", refused: fmt.Sprintf(takes, "a number above 0"), remedy: unquoted,
		good: number(func(n float64) bool { return n > 0 }), holds: numberOf("v", "> 0"),
		fields: map[string]string{
			partDeployment: "health_check_period_s health_check_timeout_s",
			"autoscaling": "target_ongoing_requests? metrics_interval_s look_back_period_s smoothing_factor upscale_smoothing_factor? " +
				"downscale_smoothing_factor? upscaling_factor? downscaling_factor?",
		},
	},
	{
		id: "serve-fraction", refused: fmt.Sprintf(takes, "a number above 0 and not above 1"), remedy: "correct it; 0.2 is 20 percent",
		good: number(func(n float64) bool { return n > 0 && n <= 1 }), holds: numberOf("v", "> 0", "<= 1"),
		fields: map[string]string{partDeployment: "rolling_update_percentage"},
	},
	{
		id: "serve-ratio", refused: fmt.Sprintf(takes, "a number from 0 to 1"), remedy: "correct it; 0.01 is 1 percent",
		good: number(func(n float64) bool { return n >= 0 && n <= 1 }), holds: numberOf("v", ">= 0", "<= 1"),
		fields: map[string]string{"tracing": "sampling_ratio"},
	},
	{
		id: "serve-status", refused: "the status must be 503 or 429", remedy: "use one of the two",
		good: number(func(n float64) bool { return n == 503 || n == 429 }), holds: "v in [503, 429]",
		fields: map[string]string{"backpressure": "status_code"},
	},
	{
		id: "serve-replicas", refused: `num_replicas must be a whole number of 1 or more, or "auto"`,
		remedy: "correct it; for less than 1 set autoscaling_config with min_replicas 0 instead",
		good:   func(value any) bool { return isCount(value) || value == "auto" }, holds: "(" + countOf("v") + " || v == 'auto')",
		fields: map[string]string{partDeployment: "num_replicas?"},
	},
	{
		id: "serve-queue", refused: "max_queued_requests must be a whole number of 1 or more, or -1 for no limit", remedy: unquoted,
		good: func(value any) bool { return isCount(value) || value == -1.0 }, holds: "(" + countOf("v") + " || v == -1)",
		fields: map[string]string{partDeployment: "max_queued_requests"},
	},
	{
		id: "serve-aggregation", refused: "the value must be one that Serve allows", remedy: "use mean, max or min",
		good: func(value any) bool {
			word, ok := value.(string)
			return ok && slices.Contains(aggregations, strings.ToLower(word))
		},
		holds:  "(type(v) == string && v.lowerAscii() in " + list(aggregations) + ")",
		fields: map[string]string{"autoscaling": "aggregation_function"},
	},
	{
		id: "serve-log-level", refused: "the level must be a name of Python's logging, or a number", remedy: "use DEBUG, INFO, WARNING, ERROR or CRITICAL",
		good: func(value any) bool {
			name, _ := value.(string)
			number, isNumber := value.(float64)
			return slices.Contains(levels, name) || isNumber && isWhole(value, 0, 50) && math.Mod(number, 10) == 0
		},
		holds:  "(v in " + list(levels) + " || v in [0, 10, 20, 30, 40, 50])",
		fields: map[string]string{"logging": "log_level"},
	},
	oneOfWords("serve-placement", map[string]string{partDeployment: "placement_group_strategy"}, "PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD"),
	oneOfWords("serve-gang-placement", map[string]string{"gang": "gang_placement_strategy"}, "PACK", "SPREAD"),
	oneOfWords("serve-gang-failure", map[string]string{"gang": "runtime_failure_policy"}, "RESTART_GANG"),
	oneOfWords("serve-encoding", map[string]string{"logging": "encoding"}, "TEXT", "JSON"),
}

var (
	aggregations = []string{"mean", "max", "min"}
	levels       = []string{"CRITICAL", "FATAL", "ERROR", "WARN", "WARNING", "INFO", "DEBUG", "NOTSET"}
)

// oneOfWords is the shape of fields that take one of some words.
func oneOfWords(id string, fields map[string]string, words ...string) shape {
	return shape{
		id: id, refused: "the value must be one that Serve allows", remedy: "use " + joined(words, " or "), fields: fields,
		good:  func(value any) bool { word, ok := value.(string); return ok && slices.Contains(words, word) },
		holds: "v in " + list(words),
	}
}

// serveFormRules are about the form of what is said, one for each shape.
var serveFormRules = func() []Rule {
	var rules []Rule
	for i := range shapes {
		rules = append(rules, shapes[i].asRule())
	}
	return rules
}()

func (s *shape) asRule() Rule {
	var flaws []flaw
	var names []string
	for _, kind := range sorted(s.fields) {
		for name := range strings.FieldsSeq(s.fields[kind]) {
			key, orNull := strings.CutSuffix(name, "?")
			flaws = append(flaws, s.flaw(kind, key, orNull))
			if !slices.Contains(names, key) {
				names = append(names, key)
			}
		}
	}
	return ofParts(Rule{ID: s.id, Field: "spec.serveConfig.**." + joined(names, ", "), Refused: s.refused, Remedy: s.remedy}, flaws...)
}

// flaw is that a field is there and has not the shape.
func (s *shape) flaw(kind, key string, orNull bool) flaw {
	bad := fmt.Sprintf("[o.of.%s].exists(v, !(%s))", key, s.holds)
	if orNull {
		bad = fmt.Sprintf("[o.of.%s].exists(v, v != null && !(%s))", key, s.holds)
	}
	return flaw{
		in: kind, key: key, when: fmt.Sprintf("'%s' in o.of && %s", key, bad),
		wrong: func(of map[string]any) bool {
			value, there := of[key]
			return there && !(orNull && value == nil) && !s.good(value)
		},
	}
}
