package tune

import (
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
	header = regexp.MustCompile(`^trial  +state  +`)
	row    = regexp.MustCompile(`^[0-9]{1,5}  +(Running|Succeeded|Pruned|Failed)( |$)`)
)

// reader finds the trials in the output of an attempt that is written to it. Output has bytes of programs between, of any size.
type reader struct {
	// names are those of the parameters.
	names []string
	found map[int]trial
	// columns are where those of a table begin, nil outside of one.
	columns []int
	// line is the one that is not at its end, and isLong that its rest is passed over.
	line   []byte
	isLong bool
}

func newReader(names []string) *reader { return &reader{names: names, found: map[int]trial{}} }

// Write takes a piece of output.
func (r *reader) Write(data []byte) (int, error) {
	for rest := data; len(rest) > 0; {
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			r.add(rest)
			break
		}
		r.add(rest[:end])
		r.endLine()
		rest = rest[end+1:]
	}
	return len(data), nil
}

// trials returns what was found, in the order of numbers.
func (r *reader) trials() []trial {
	r.endLine()
	var all []trial
	for _, number := range slices.Sorted(maps.Keys(r.found)) {
		all = append(all, r.found[number])
	}
	return all
}

func (r *reader) add(part []byte) {
	r.isLong = r.isLong || len(r.line)+len(part) > mostLine
	if !r.isLong {
		r.line = append(r.line, part...)
	}
}

func (r *reader) endLine() {
	line := string(r.line)
	switch match := note.FindStringSubmatch(line); {
	case r.isLong:
		r.columns = nil
	case match != nil:
		r.takeNote(match[1], match[2])
	case header.MatchString(line):
		r.columns = starts(line)
	case r.columns != nil && row.MatchString(line):
		r.takeRow(cut(line, r.columns))
	default:
		r.columns = nil
	}
	r.line, r.isLong = r.line[:0], false
}

// takeNote takes what the launcher says when a trial begins or ends.
func (r *reader) takeNote(number, text string) {
	at, err := strconv.Atoi(number)
	if err != nil {
		return
	}
	one := r.found[at]
	switch match := end.FindStringSubmatch(text); {
	case match != nil:
		one.State, one.Value, one.Message = strings.ToUpper(match[1][:1])+match[1][1:], match[2], match[3]
	case len(r.names) > 0 && strings.HasPrefix(text, r.names[0]+"="):
		one = trial{Number: at, State: "Running", Parameters: r.values(text)}
	default: // a line of the gang, such as that of a round
		return
	}
	r.found[at] = one
}

// values returns those of all parameters in a line, in which they have the order of the spec. A value may have a comma.
func (r *reader) values(text string) map[string]string {
	all := map[string]string{}
	for i, name := range r.names {
		text = strings.TrimPrefix(text, name+"=")
		if i+1 < len(r.names) {
			all[name], text, _ = strings.Cut(text, ", "+r.names[i+1]+"=")
		} else {
			all[name] = text
		}
	}
	return all
}

// takeRow takes a row of the table: trial, state, value, parameters, and four more.
func (r *reader) takeRow(cells []string) {
	if len(cells) != 7+len(r.names) {
		return
	}
	at, err := strconv.Atoi(cells[0])
	if err != nil {
		return
	}
	one := trial{Number: at, State: cells[1], Value: shown(cells[2]), Message: shown(cells[len(cells)-1]), Parameters: map[string]string{}}
	for i, name := range r.names {
		one.Parameters[name] = shown(cells[3+i])
	}
	r.found[at] = one
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
