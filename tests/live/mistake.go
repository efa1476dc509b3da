package live

// MistakesLabel is of the specs that make first mistakes on purpose, and MistakesEntry of what each showed.
const (
	MistakesLabel = "first-mistakes"
	MistakesEntry = "first mistake"
)

// Mistake is what a user saw of one.
type Mistake struct {
	// Name says what was wrong, Where what shows it, and Line is the one line shown, without the path of the object.
	Name, Where, Line string
	// Shown is after how many seconds, and Mended after how many the corrected object was ready. Refused ones are corrected
	// and applied.
	Shown, Mended float64
}
