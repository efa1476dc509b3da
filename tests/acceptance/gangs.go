package main

// fuzzedReports looks for reports of gangs that break what reads them.
var fuzzedReports = fuzzed("gang-report-fuzz", "the reader of a gang's report", "ray-operator/launcher")
