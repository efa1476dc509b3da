package convert

import (
	"strconv"
	"strings"
)

// sparkSettings are settings that a gang has of its own, by what they begin with, with what is said of them.
var sparkSettings = []struct {
	prefix  string
	differs bool
	text    string
}{
	{"spark.kubernetes.", true, "no pod is made by Spark; set what pods need in the template of a worker group"},
	{"spark.dynamicAllocation.", true, "executors do not follow demand; minReplicas and replicas of the role executor bound their number"},
	{"spark.master", false, "the gang has a Master of its own"},
	{"spark.submit.deployMode", false, "the driver runs in the gang's place of that role"},
	{"spark.executor.instances", false, "executor.instances says it too, which counts"},
	{"spark.executor.cores", false, "executor.cores says it too, which counts"},
	{"spark.executor.memory", false, "executor.memory says it too, which counts"},
	{"spark.executor.memoryOverhead", false, "executor.memoryOverhead says it too, which counts"},
	{"spark.driver.memory", false, "driver.memory says it too, which counts"},
	{"spark.driver.memoryOverhead", false, "driver.memoryOverhead says it too, which counts"},
	{"spark.driver.cores", false, "driver.cores says it too, which counts"},
	{"spark.driver.extraJavaOptions", false, "driver.javaOptions says it too, which counts"},
	{"spark.executor.extraJavaOptions", false, "executor.javaOptions says it too, which counts"},
	{"spark.authenticate", false, "the gang has a secret of its own for each round"},
	{"spark.driver.host", false, "the gang gives the driver its address"},
	{"spark.driver.bindAddress", false, "the gang gives the driver its address"},
	{"spark.driver.port", false, "the gang gives the driver its ports"},
	{"spark.driver.blockManager.port", false, "the gang gives the driver its ports"},
	{"spark.blockManager.port", false, "the gang gives executors their ports"},
	{"spark.port.maxRetries", false, "a port that is taken starts the round again with others"},
	{"spark.ui.port", false, "the gang gives the page a port: heliostat open job/NAME --port 4040"},
	{"spark.ui.killEnabled", false, "no page of a gang ends anything"},
	{"spark.master.rest.enabled", false, "the gang's Master takes no applications by REST"},
}

// takeConf divides the settings: those that fields say too, those that the gang has of its own, and those that stay.
func (s *sparkPart) takeConf() {
	for _, key := range sortedKeys(s.app.SparkConf) {
		value, at := s.app.SparkConf[key], join("spec.sparkConf", key)
		if s.isTaken(key, value) {
			s.keep(at)
			continue
		}
		is := false
		for _, setting := range sparkSettings {
			if key == setting.prefix || strings.HasSuffix(setting.prefix, ".") && strings.HasPrefix(key, setting.prefix) ||
				setting.prefix == "spark.authenticate" && strings.HasPrefix(key, setting.prefix) {
				s.note(Row{Path: at, Verdict: Dropped, Differs: setting.differs, Text: setting.text})
				is = true
				break
			}
		}
		if !is {
			s.conf[key] = value
		}
	}
	s.addConf("spark.executor.extraJavaOptions", s.app.Executor.JavaOptions)
	s.addConf("spark.driver.memoryOverhead", s.app.Driver.MemoryOverhead)
	s.addConf("spark.executor.memoryOverhead", s.app.Executor.MemoryOverhead)
	s.addConf("spark.driver.memoryOverheadFactor", s.app.MemoryOverheadFactor)
	s.addConf("spark.executor.memoryOverheadFactor", s.app.MemoryOverheadFactor)
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
