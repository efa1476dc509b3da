package tune

import (
	"bufio"
	"bytes"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// trial is a row of the table, as programs read it.
type trial struct {
	Number     int               `json:"trial"`
	State      string            `json:"state"`
	Value      string            `json:"value,omitempty"`
	Parameters map[string]string `json:"parameters"`
	Message    string            `json:"message,omitempty"`
}

// mostLine is how long a line of the job's output may be that is looked at.
const mostLine = 64 << 10

// Lines of the launcher. No line of a program has these beginnings, as each has the number of its trial in front.
var (
	note   = regexp.MustCompile(`^gang: trial ([0-9]{1,5}): (.*)$`)
	end    = regexp.MustCompile(`^(succeeded|pruned|failed)(?:, [^ =]+=([^ :]+))?(?:: (.*))?$`)
	values = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*=`)
	header = regexp.MustCompile(`^trial  +state  +`)
	row    = regexp.MustCompile(`^[0-9]{1,5}  +(Running|Succeeded|Pruned|Failed)( |$)`)
)

// readTrials returns the trials in the output of an attempt, in the order of their numbers. Output has bytes of programs between.
func readTrials(output []byte, names []string) []trial {
	found := map[int]trial{}
	var columns []int
	lines := bufio.NewScanner(bytes.NewReader(output))
	lines.Buffer(make([]byte, 0, mostLine), len(output)+1)
	for lines.Scan() {
		line := lines.Text()
		switch match := note.FindStringSubmatch(line); {
		case len(line) > mostLine:
		case match != nil:
			takeNote(found, match[1], match[2])
		case header.MatchString(line):
			columns = starts(line)
		case columns != nil && row.MatchString(line):
			takeRow(found, cut(line, columns), names)
		default:
			columns = nil
		}
	}
	return sorted(found)
}

// takeNote takes what the launcher says when a trial begins or ends.
func takeNote(found map[int]trial, number, text string) {
	at, err := strconv.Atoi(number)
	if err != nil {
		return
	}
	one := found[at]
	switch match := end.FindStringSubmatch(text); {
	case match != nil:
		one.State, one.Value, one.Message = strings.ToUpper(match[1][:1])+match[1][1:], match[2], match[3]
	case values.MatchString(text):
		one = trial{Number: at, State: "Running", Parameters: map[string]string{}}
		for _, part := range strings.Split(text, ", ") {
			name, value, _ := strings.Cut(part, "=")
			one.Parameters[name] = value
		}
	default: // a line of the gang, such as that of a round
		return
	}
	found[at] = one
}

// takeRow takes a row of the table: trial, state, value, parameters, and four more.
func takeRow(found map[int]trial, cells, names []string) {
	if len(cells) != 7+len(names) {
		return
	}
	at, err := strconv.Atoi(cells[0])
	if err != nil {
		return
	}
	one := trial{Number: at, State: cells[1], Value: shown(cells[2]), Message: shown(cells[len(cells)-1]), Parameters: map[string]string{}}
	for i, name := range names {
		one.Parameters[name] = shown(cells[3+i])
	}
	found[at] = one
}

// shown returns a cell of the table, in which a dash is nothing.
func shown(cell string) string {
	if cell == "-" {
		return ""
	}
	return cell
}

// starts returns where the columns of a table begin, counted in characters.
func starts(header string) []int {
	var all []int
	former := ' '
	for i, char := range []rune(header) {
		if char != ' ' && former == ' ' {
			all = append(all, i)
		}
		former = char
	}
	return all
}

// cut returns the cells of a row.
func cut(line string, columns []int) []string {
	chars := []rune(line)
	var cells []string
	for i, from := range columns {
		to := len(chars)
		if i+1 < len(columns) {
			to = min(to, columns[i+1])
		}
		cells = append(cells, strings.TrimSpace(string(chars[min(from, len(chars)):to])))
	}
	return cells
}

// sorted returns trials in the order of their numbers.
func sorted(trials map[int]trial) []trial {
	var all []trial
	for _, number := range slices.Sorted(maps.Keys(trials)) {
		all = append(all, trials[number])
	}
	return all
}

// rows returns the table for people.
func rows(trials []trial, names []string) [][]string {
	var all [][]string
	for _, one := range trials {
		cells := []string{strconv.Itoa(one.Number), one.State, one.Value}
		for _, name := range names {
			cells = append(cells, one.Parameters[name])
		}
		all = append(all, append(cells, one.Message))
	}
	return all
}
