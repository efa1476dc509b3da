package convert_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/heliostat-dev/heliostat/ray-operator/convert"
	"github.com/heliostat-dev/heliostat/tests/rayio"
)

// judgedApplications has values of applications of Spark that make a difference, each with the row that says so.
var judgedApplications = map[string]judgedJob{
	"no file is refused":                    {spark, fields{"spec.mainApplicationFile": nil}, "spec.mainApplicationFile", convert.Refused, "name it"},
	"a size of Kubernetes is refused":       {spark, fields{"spec.driver.memory": "2Gi"}, "spec.driver.memory", convert.Refused, "512m"},
	"cores that are no number are refused":  {spark, fields{"spec.executor.coreRequest": "half"}, "spec.executor.coreRequest", convert.Refused, "no number of cores"},
	"a factor that is no number is refused": {spark, fields{"spec.memoryOverheadFactor": "a third"}, "spec.memoryOverheadFactor", convert.Refused, "0.1"},
	"a pod has more than the JVM":           {spark, fields{"spec.executor.memory": "4g"}, "spec.executor.memory", convert.Changed, "the pod has"},
	"a setting of Kubernetes is dropped": {spark, fields{"spec.sparkConf": settings("spark.kubernetes.namespace", "a")},
		"spec.sparkConf[spark.kubernetes.namespace]", convert.Dropped, "no pod is made by Spark"},
	"a master is dropped": {spark, fields{"spec.sparkConf": settings("spark.master", "k8s://a")}, "spec.sparkConf[spark.master]", convert.Dropped, "of its own"},
	"the store of a Master is dropped": {spark, fields{"spec.sparkConf": settings("spark.deploy.recoveryMode", "FILESYSTEM")},
		"spec.sparkConf[spark.deploy.recoveryMode]", convert.Dropped, "a Master of its own"},
	"a secret is dropped": {spark, fields{"spec.sparkConf": settings("spark.authenticate.secret", "a")},
		"spec.sparkConf[spark.authenticate.secret]", convert.Dropped, "each round"},
	"a port of the page is dropped": {spark, fields{"spec.sparkConf": settings("spark.ui.port", "4045")}, "spec.sparkConf[spark.ui.port]", convert.Dropped, "heliostat open"},
	"cores that are said twice are dropped": {spark, fields{"spec.sparkConf": settings("spark.executor.cores", "3")},
		"spec.sparkConf[spark.executor.cores]", convert.Dropped, "executor.cores says it too"},
	"executors that follow demand": {spark, fields{"spec.dynamicAllocation": map[string]any{"enabled": true, "maxExecutors": int64(5)}},
		"spec.dynamicAllocation.enabled", convert.Changed, "up to 5"},
	"executors that follow demand by a setting": {spark, fields{"spec.sparkConf": settings("spark.dynamicAllocation.enabled", "true")},
		"spec.sparkConf[spark.dynamicAllocation.enabled]", convert.Changed, "do not follow demand"},
	"restarts are of the whole application": {spark, fields{"spec.restartPolicy": map[string]any{"type": "OnFailure", "onFailureRetries": int64(2)}},
		"spec.restartPolicy.type", convert.Changed, "at most 2 times"},
	"a page has no Service": {spark, fields{"spec.sparkUIOptions.serviceType": "NodePort"}, "spec.sparkUIOptions", convert.Dropped, "--port 4040"},
	"no image is refused":   {spark, fields{"spec.image": nil}, "spec.image", convert.Refused, "--image"},
	"an argument that only a pod finds is refused": {spark, fields{"spec.arguments": []any{"a", "$(KEY)"}, "spec.driver.env": []any{secretly}},
		"spec.arguments[1]", convert.Refused, "line for a shell"},
	"a variable of the gang's is dropped from an application": {spark, fields{"spec.driver.envVars": map[string]any{"SPARK_CONF_DIR": "/a"}},
		"spec.driver.envVars.SPARK_CONF_DIR", convert.Dropped, "sets SPARK_CONF_DIR"},
	"a command in a template is dropped": {spark, fields{"spec.driver.template": map[string]any{"spec": map[string]any{"containers": []any{
		map[string]any{"name": "a", "command": []any{"b"}}}}}}, "spec.driver.template.spec.containers", convert.Dropped, "no place"},
	"an interval becomes times":                   {sparkTimes, fields{"spec.schedule": "@every 3m"}, "spec.schedule", convert.Changed, `"*/3 * * * *"`},
	"an interval of hours":                        {sparkTimes, fields{"spec.schedule": "@every 6h"}, "spec.schedule", convert.Changed, `"0 */6 * * *"`},
	"an interval that divides nothing is refused": {sparkTimes, fields{"spec.schedule": "@every 7m"}, "spec.schedule", convert.Refused, "cron's form"},
	"a suspended template is dropped":             {sparkTimes, fields{"spec.template.suspend": true}, "spec.template.suspend", convert.Dropped, "suspend the schedule"},
}

func settings(key, value string) map[string]any { return map[string]any{key: value} }

// TestObject_SubmitsApplications: the command by which an application runs.
func TestObject_SubmitsApplications(t *testing.T) {
	for name, c := range map[string]struct {
		set  fields
		want string
	}{
		"a class": {nil, "spark-submit --class org.example.Main --driver-memory 1g --executor-memory 2g /app/main.jar"},
		"arguments": {fields{"spec.arguments": []any{"a b", "$(LEVEL)", "$$x"}, "spec.driver.envVars": map[string]any{"LEVEL": "info"}},
			"spark-submit --class org.example.Main --driver-memory 1g --executor-memory 2g /app/main.jar a b info $x"},
		"settings": {fields{"spec.sparkConf": settings("spark.a", "$(role)$HOME"), "spec.hadoopConf": settings("fs.b", "c"), "spec.mainClass": nil},
			"spark-submit --driver-memory 1g --executor-memory 2g --conf spark.a=$$(role)$HOME --conf spark.hadoop.fs.b=c /app/main.jar"},
		"sizes of settings": {fields{"spec.driver": map[string]any{}, "spec.executor": map[string]any{}, "spec.mainClass": nil,
			"spec.sparkConf": map[string]any{"spark.executor.memory": "3g", "spark.driver.memoryOverhead": "1g"}},
			"spark-submit --driver-memory 1g --executor-memory 3g --conf spark.driver.memoryOverhead=1g /app/main.jar"},
		"files": {fields{"spec.mainApplicationFile": "s3a://b/a.py", "spec.type": "Python", "spec.mainClass": nil,
			"spec.deps": map[string]any{"jars": []any{"a", "b"}, "pyFiles": []any{"c"}, "excludePackages": []any{"d"}, "archives": []any{"e#f"}}},
			"spark-submit --driver-memory 1g --executor-memory 2g --jars a,b --py-files c --archives e#f --exclude-packages d s3a://b/a.py"},
		"options of a JVM": {fields{"spec.driver.javaOptions": "-Da=1 -Db=2", "spec.executor.javaOptions": "-Dc=3"},
			"spark-submit --class org.example.Main --driver-memory 1g --executor-memory 2g --driver-java-options -Da=1 -Db=2 " +
				"--conf spark.executor.extraJavaOptions=-Dc=3 /app/main.jar"},
	} {
		t.Run(name, func(t *testing.T) {
			object := base(spark)
			for path, value := range c.set {
				rayio.Set(object.Object, path, value)
			}
			result := convert.Object(object, convert.Options{})
			if result.Refused() {
				t.Fatal(result.Rows)
			}
			command, _, _ := unstructured.NestedStringSlice(result.Objects[0].Object, "spec", "command")
			if diff := cmp.Diff(c.want, strings.Join(command, " ")); diff != "" {
				t.Errorf("the command is another one (- wanted):\n%s", diff)
			}
		})
	}
}

// TestObject_SizesExecutors: cores are the role's CPUs whatever the pod asks for, and memory is for JVM, overhead and what runs beside it.
func TestObject_SizesExecutors(t *testing.T) {
	for name, c := range map[string]struct {
		set                               fields
		onto                              string
		cpu, ofRay, pod, memory, replicas string
	}{
		"cores":             {nil, "", "2", "", "2", "3712Mi", "2 0"},
		"a part of a core":  {fields{"spec.executor.coreRequest": "500m"}, "", "2", "2", "500m", "3712Mi", "2 0"},
		"Python":            {fields{"spec.type": "Python"}, "", "2", "", "2", "4147Mi", "2 0"},
		"overhead":          {fields{"spec.executor.memoryOverhead": "1g"}, "", "2", "", "2", "4352Mi", "2 0"},
		"a larger limit":    {fields{"spec.executor.memoryLimit": "8Gi"}, "", "2", "", "2", "8Gi", "2 0"},
		"more with time":    {fields{"spec.dynamicAllocation": map[string]any{"enabled": true, "minExecutors": int64(1), "maxExecutors": int64(4)}}, "", "2", "", "2", "3712Mi", "4 1"},
		"no maximum":        {fields{"spec.dynamicAllocation": map[string]any{"enabled": true, "minExecutors": int64(5)}}, "", "2", "", "2", "3712Mi", "5 0"},
		"a cluster's place": {nil, "shared", "2", "", "", "2688Mi", "2 0"},
	} {
		t.Run(name, func(t *testing.T) {
			object := base(spark)
			for path, value := range c.set {
				rayio.Set(object.Object, path, value)
			}
			result := convert.Object(object, convert.Options{Kubeflow: convert.Kubeflow{Onto: c.onto}})
			if result.Refused() {
				t.Fatal(result.Rows)
			}
			spec := result.Objects[0].Object["spec"].(map[string]any)
			roles, _, _ := unstructured.NestedSlice(spec, "gang", "roles")
			executor := roles[1].(map[string]any)
			text := func(of map[string]any, path ...string) string {
				found, _, _ := unstructured.NestedString(of, path...)
				return found
			}
			got := []string{text(executor, "resources", "CPU"), "", "", text(executor, "resources", "memory")}
			if c.onto == "" {
				groups, _, _ := unstructured.NestedSlice(spec, "clusterTemplate", "spec", "workerGroups")
				group := groups[1].(map[string]any)
				containers, _, _ := unstructured.NestedSlice(group, "template", "spec", "containers")
				container := containers[0].(map[string]any)
				got = []string{got[0], text(group, "rayResources", "CPU"), text(container, "resources", "requests", "cpu"), text(container, "resources", "limits", "memory")}
			}
			least, _, _ := unstructured.NestedInt64(executor, "minReplicas")
			replicas, _, _ := unstructured.NestedInt64(executor, "replicas")
			if diff := cmp.Diff([]string{c.cpu, c.ofRay, c.pod, c.memory, c.replicas}, append(got, fmt.Sprintf("%d %d", replicas, least))); diff != "" {
				t.Errorf("sizes are others (- wanted):\n%s", diff)
			}
		})
	}
}
