package redact

import "bytes"

// envValues calls found with each value of an object env_vars in a text of JSON. The object may stand in a string of JSON, and that in
// another one: then its quotes have backslashes, by which they are told from quotes within the values.
func envValues(text []byte, found func(from, to int)) {
	const name = "env_vars"
	for from := 0; ; {
		i := bytes.Index(text[from:], []byte(name))
		if i < 0 {
			return
		}
		from += i + len(name)
		e := export{text: text, place: from}
		if e.opens() {
			e.values(found)
		}
	}
}

// export reads the members of one object. Depth is how many backslashes stand before its quotes.
type export struct {
	text         []byte
	place, depth int
}

// opens reads the rest of the name, and the beginning of the object.
func (e *export) opens() bool {
	for e.place+e.depth < len(e.text) && e.text[e.place+e.depth] == '\\' {
		e.depth++
	}
	// Each string in a string doubles the backslashes and adds one.
	if e.depth&(e.depth+1) != 0 || !e.quote() {
		return false
	}
	return e.skip(':') && e.skip('{')
}

// quote reads a quote of this depth.
func (e *export) quote() bool {
	end := e.place + e.depth
	if end >= len(e.text) || e.text[end] != '"' || len(bytes.Trim(e.text[e.place:end], `\`)) > 0 {
		return false
	}
	e.place = end + 1
	return true
}

// skip reads a character after blanks.
func (e *export) skip(character byte) bool {
	e.blanks()
	if e.place >= len(e.text) || e.text[e.place] != character {
		return false
	}
	e.place++
	return true
}

// end reads up to the quote that ends a string, and returns where that is. A string without an end reaches to the end of the text.
func (e *export) end() int {
	begin := e.place
	for i := begin; i < len(e.text); i++ {
		if e.text[i] != '"' {
			continue
		}
		slashes := 0
		for i-slashes > begin && e.text[i-slashes-1] == '\\' {
			slashes++
		}
		if over := slashes - e.depth; over >= 0 && over%(2*(e.depth+1)) == 0 {
			e.place = i + 1
			return i - e.depth
		}
	}
	e.place = len(e.text)
	return e.place
}

// values reads the members up to the end of the object.
func (e *export) values(found func(from, to int)) {
	for {
		e.blanks()
		if !e.quote() {
			return
		}
		e.end()
		if !e.skip(':') {
			return
		}
		e.blanks()
		begin := e.place
		if e.quote() {
			begin = e.place
			found(begin, e.end())
		} else {
			e.place += len(e.text[begin:]) - len(bytes.TrimLeftFunc(e.text[begin:], func(r rune) bool { return r != ',' && r != '}' }))
			found(begin, e.place)
		}
		if !e.skip(',') {
			return
		}
	}
}

// blanks reads blanks.
func (e *export) blanks() {
	for e.place < len(e.text) && (e.text[e.place] == ' ' || e.text[e.place] == '\t') {
		e.place++
	}
}
