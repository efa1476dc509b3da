package validate

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// SparkSetting is a setting of Spark that a gang has of its own. A user's would contradict the launcher's.
type SparkSetting struct {
	// Name of the setting. With '*' at its end it is all that begin so.
	Name string
	// Value is the one that contradicts, as a part of a regular expression; empty for any.
	Value string
	// Why is what the gang does about the setting.
	Why string
}

const (
	ownAddress = "the gang gives the driver its address"
	ownPorts   = "the gang gives the driver its ports"
)

// sparkOwn are the settings that a gang has of its own. The launcher sets them, or takes them from the image's.
var sparkOwn = []SparkSetting{
	{Name: "spark.authenticate*", Why: "the gang has a secret of its own for each round"},
	{Name: "spark.blockManager.port", Why: "the gang gives executors their ports"},
	{Name: "spark.deploy.recoveryMode", Why: "each round has a Master of its own, which starts empty"},
	{Name: "spark.driver.bindAddress", Why: ownAddress},
	{Name: "spark.driver.blockManager.port", Why: ownPorts},
	{Name: "spark.driver.host", Why: ownAddress},
	{Name: "spark.driver.port", Why: ownPorts},
	{Name: "spark.dynamicAllocation.enabled", Value: "(?i:true)", Why: "executors do not follow demand; minReplicas and replicas of the role executor bound their number"},
	{Name: "spark.executor.cores", Why: "CPU of the role executor is its cores"},
	{Name: "spark.kubernetes.*", Why: "no pod is made by Spark; set what pods need in the template of a worker group"},
	{Name: "spark.master", Why: "the gang has a Master of its own"},
	{Name: "spark.master.rest.enabled", Why: "the gang's Master takes no applications by REST"},
	{Name: "spark.master.ui.decommission.allow.mode", Why: "no page of a gang ends anything"},
	{Name: "spark.port.maxRetries", Why: "a port that is taken starts the round again with others"},
	{Name: "spark.submit.deployMode", Why: "the driver runs in the gang's place of that role"},
	{Name: "spark.ui.killEnabled", Why: "no page of a gang ends anything"},
	{Name: "spark.ui.port", Why: "the gang gives the page a port: heliostat open job/NAME --port 4040"},
}

// OwnSparkSetting returns what a gang has of its own that a setting of this name would contradict, whatever its value is.
func OwnSparkSetting(name string) (SparkSetting, bool) {
	for _, own := range sparkOwn {
		if begin, isMany := strings.CutSuffix(own.Name, "*"); name == own.Name || isMany && strings.HasPrefix(name, begin) {
			return own, true
		}
	}
	return SparkSetting{}, false
}

// ownSettings matches what stands behind "spark." in a setting with a value that contradicts the gang's. Names with the same first word
// share it, because the API server counts the length of an expression.
func ownSettings() string {
	var heads []string
	tails := map[string][]string{}
	for _, own := range sparkOwn {
		head, tail, _ := strings.Cut(strings.TrimPrefix(own.Name, "spark."), ".")
		if tail != "" {
			tail = "." + tail
		}
		head = strings.ReplaceAll(head, "*", "[a-zA-Z.]*")
		if _, is := tails[head]; !is {
			heads = append(heads, head)
		}
		tail = strings.NewReplacer(".", "[.]", "*", `[^\s=]+`).Replace(tail)
		tails[head] = append(tails[head], tail+"="+own.Value)
	}
	for i, head := range heads {
		heads[i] += tails[head][0]
		if len(tails[head]) > 1 {
			heads[i] = head + "(" + joined(tails[head], "|") + ")"
		}
	}
	return joined(heads, "|")
}

// sparkSetting matches an option of Spark's programs, before the application, that sets what the gang sets. The option stands last.
// Words are apart by spaces, ends of lines and the backslashes before these. A value may be quoted.
var sparkSetting = regexp.MustCompile(`(^|[\s/;&|(])(spark-submit|spark-shell|spark-sql|pyspark)` +
	`([\s\\]+(--?[^\s=]+=("[^"]*"|\x27[^\x27]*\x27|[^\s]*)|-v|-[A-Z][^\s]*|--(verbose|supervise)|` +
	`(-[a-uw-z]|--[^vs\s=-][^\s=]*)([\s\\]+("[^"]*"|\x27[^\x27]*\x27|[^\s\\-][^\s]*))?))*[\s\\]+` +
	`((--master|--properties-file|--executor-cores)[\s=]|--deploy-mode[\s=]+cluster|(--conf|-c)[\s=]+[^a-z\s]?spark[.](` + ownSettings() + `))`)

// settingAlone matches the option in what sparkSetting matches.
var settingAlone = regexp.MustCompile(`(spark[.]|--)[^\s=]+([\s=]+[a-zA-Z]+)?[\s=]?$`)

// submitArguments is the variable that has options of pyspark, where a Python program starts it.
const submitArguments = "PYSPARK_SUBMIT_ARGS"

// lines returns what a program runs as lines of a shell, also what it runs by a word or a variable. A space within a word is no end of it.
func (p *program) lines() []string {
	var words []string
	for _, word := range p.command {
		words = append(words, strings.ReplaceAll(word, " ", "_"))
	}
	all := []string{strings.Join(words, " ") + " ", p.entrypoint + " "}
	for _, word := range p.command {
		all = append(all, word+" ")
	}
	for i := range p.env {
		if p.env[i].Name == submitArguments {
			all = append(all, "pyspark "+p.env[i].Value+" ")
		}
	}
	return all
}

// linesOf is an expression with the same result, for what o stands for, and linesOfVars one for the variables of the runtime environment.
const (
	linesOf = "[o.?command.orValue([]).map(w, w.replace(' ', '_')).join(' ') + ' ', o.?entrypoint.orValue('') + ' '] + " +
		"o.?command.orValue([]).map(w, w + ' ') + " +
		"o.?env.orValue([]).filter(e, e.name == '" + submitArguments + "').map(e, 'pyspark ' + e.?value.orValue('') + ' ')"
	linesOfVars = "variables.vars.filter(n, n == '" + submitArguments + "' && type(variables.vars[n]) == string)" +
		".map(n, 'pyspark ' + string(variables.vars[n]) + ' ')"
)

// lines returns what a job of Spark runs, in all its programs.
func (r *run) lines() []string {
	var all []string
	for _, p := range r.programs() {
		all = append(all, p.lines()...)
	}
	if text, is := r.vars[submitArguments].(string); is {
		all = append(all, "pyspark "+text+" ")
	}
	return all
}

// sparkVariable has what of a job's lines contradicts its gang.
func sparkVariable() Variable {
	return Variable{Name: "sparkSettings", Expression: fmt.Sprintf("variables.job.?gang.?framework.orValue('') != '%s' ? [] : "+
		"(variables.programs.map(o, %s) + [%s]).map(l, l.filter(t, t.matches(r'%s')).map(t, t.find(r'%s'))).filter(l, size(l) > 0)",
		v1beta1.FrameworkSpark, linesOf, linesOfVars, sparkSetting, sparkSetting)}
}

// sparkRule is about settings that the gang has of its own.
var sparkRule = Rule{
	ID: "gang-spark-setting", Field: "spec.gang", By: Policy,
	Refused: "the gang sets Spark's master, addresses, ports, cores and authentication, and its executors do not scale",
	Remedy:  "leave the setting out, and give CPU and replicas of the role executor",
	Holds:   "size(variables.sparkSettings) == 0",
	At:      "'spec.gang'", Which: fmt.Sprintf("variables.sparkSettings[0][0].find(r'%s').trim()", settingAlone),
	job: func(r *run, bad report) {
		if r.spec.Gang == nil || r.spec.Gang.Framework != v1beta1.FrameworkSpark {
			return
		}
		for _, line := range r.lines() {
			if found := sparkSetting.FindString(line); found != "" {
				bad.which(specPath.Child("gang"), strings.TrimSpace(settingAlone.FindString(found)))
				return
			}
		}
	},
}
