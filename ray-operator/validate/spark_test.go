package validate

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestSparkOwn_HasWhatTheLauncherSets: a setting that the launcher fixes, or takes from the image, is refused of a user.
func TestSparkOwn_HasWhatTheLauncherSets(t *testing.T) {
	text, err := os.ReadFile("../launcher/heliostat_gang/spark.py")
	if err != nil {
		t.Fatal(err)
	}
	fixed := regexp.MustCompile(`(?s)\ndef fixed\(.*?\n\n\n`).FindString(string(text))
	dropped := regexp.MustCompile(`\n_DROPPED = .*`).FindString(string(text))
	names := regexp.MustCompile(`"(spark[.][a-zA-Z.]+)"`).FindAllStringSubmatch(fixed+dropped, -1)
	if fixed == "" || dropped == "" || len(names) < 12 {
		t.Fatalf("read %d names from %q and %q", len(names), fixed, dropped)
	}
	for _, name := range names {
		own, is := OwnSparkSetting(name[1])
		line := "spark-submit --conf " + name[1] + "=true a.py "
		if !is || own.Why == "" || strings.TrimSpace(settingAlone.FindString(sparkSetting.FindString(line))) == "" {
			t.Errorf("%s: the list has %+v, and the rule finds %q", name[1], own, sparkSetting.FindString(line))
		}
	}
}
