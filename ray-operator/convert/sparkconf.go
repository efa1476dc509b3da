package convert

import (
	"strconv"
	"strings"

	"github.com/heliostat-dev/heliostat/ray-operator/validate"
)

// What settings of Spark on Kubernetes begin with, and those of an allocation that follows demand.
const ofKubernetes, ofAllocation = "spark.kubernetes.", "spark.dynamicAllocation."

// sparkFields are settings that fields of the application say too.
var sparkFields = map[string]string{
	"spark.executor.instances":        "executor.instances",
	"spark.executor.cores":            "executor.cores",
	"spark.executor.memory":           "executor.memory",
	"spark.executor.memoryOverhead":   "executor.memoryOverhead",
	"spark.driver.memory":             "driver.memory",
	"spark.driver.memoryOverhead":     "driver.memoryOverhead",
	"spark.driver.cores":              "driver.cores",
	"spark.driver.extraJavaOptions":   "driver.javaOptions",
	"spark.executor.extraJavaOptions": "executor.javaOptions",
}

// takeConf divides the settings: those that fields say too, those that the gang has of its own, and those that stay.
func (s *sparkPart) takeConf() {
	for _, key := range sortedKeys(s.app.SparkConf) {
		value, at := s.app.SparkConf[key], join("spec.sparkConf", key)
		if s.isTaken(key, value) {
			s.keep(at)
			continue
		}
		switch text, differs := unusedSetting(key); text {
		case "":
			s.conf[key] = value
		default:
			s.note(Row{Path: at, Verdict: Dropped, Differs: differs, Text: text})
		}
	}
	s.addConf("spark.executor.extraJavaOptions", s.app.Executor.JavaOptions)
	s.addConf("spark.driver.memoryOverhead", s.app.Driver.MemoryOverhead)
	s.addConf("spark.executor.memoryOverhead", s.app.Executor.MemoryOverhead)
	s.addConf("spark.driver.memoryOverheadFactor", s.app.MemoryOverheadFactor)
	s.addConf("spark.executor.memoryOverheadFactor", s.app.MemoryOverheadFactor)
}

// unusedSetting returns why a setting has no effect on a gang, empty where it has, and whether the application behaves differently then.
func unusedSetting(key string) (text string, differs bool) {
	if of, is := sparkFields[key]; is {
		return of + " says it too, which counts", false
	}
	name := key
	if strings.HasPrefix(key, ofAllocation) { // bounds and times of what the gang does not do
		name = ofAllocation + "enabled"
	}
	own, _ := validate.OwnSparkSetting(name)
	return own.Why, strings.HasPrefix(key, ofKubernetes) || strings.HasPrefix(key, ofAllocation)
}

func (s *sparkPart) addConf(key, value string) {
	if value != "" {
		s.conf[key] = value
	}
}

// isTaken has a setting say what a field of the application would, where that says nothing, and reports whether it does.
func (s *sparkPart) isTaken(key, value string) bool {
	driver, executor, dynamic := &s.app.Driver.sparkPod, &s.app.Executor.sparkPod, &s.app.DynamicAllocation
	if to, isText := map[string]*string{
		"spark.driver.memory": &driver.Memory, "spark.executor.memory": &executor.Memory,
		"spark.driver.memoryOverhead": &driver.MemoryOverhead, "spark.executor.memoryOverhead": &executor.MemoryOverhead,
		"spark.driver.extraJavaOptions": &driver.JavaOptions, "spark.executor.extraJavaOptions": &executor.JavaOptions,
		"spark.kubernetes.memoryOverheadFactor":     &s.app.MemoryOverheadFactor,
		"spark.kubernetes.driver.request.cores":     &driver.CoreRequest,
		"spark.kubernetes.executor.request.cores":   &executor.CoreRequest,
		"spark.kubernetes.driver.limit.cores":       &driver.CoreLimit,
		"spark.kubernetes.executor.limit.cores":     &executor.CoreLimit,
		"spark.kubernetes.container.image":          &s.app.Image,
		"spark.kubernetes.driver.container.image":   &driver.Image,
		"spark.kubernetes.executor.container.image": &executor.Image,
	}[key]; isText {
		if *to == "" {
			*to = value
			return true
		}
		return false
	}
	if key == "spark.dynamicAllocation.enabled" && value == "true" && !dynamic.Enabled {
		dynamic.Enabled, s.allocationAt = true, join("spec.sparkConf", key)
		return true
	}
	to, isNumber := map[string]**int32{
		"spark.driver.cores": &driver.Cores, "spark.executor.cores": &executor.Cores, "spark.executor.instances": &s.app.Executor.Instances,
		"spark.dynamicAllocation.initialExecutors": &dynamic.InitialExecutors, "spark.dynamicAllocation.minExecutors": &dynamic.MinExecutors,
		"spark.dynamicAllocation.maxExecutors": &dynamic.MaxExecutors,
	}[key]
	number, err := strconv.ParseInt(value, 10, 32)
	if !isNumber || err != nil || *to != nil {
		return false
	}
	*to = new(int32(number))
	return true
}
