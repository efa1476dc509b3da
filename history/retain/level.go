package retain

// Held is how much of the store an archive holds, and how much of that no limit can take.
type Held struct{ Size, Floor int64 }

// Level returns how many bytes an archive of a namespace may hold, so that all together are within the namespace's limit: those that
// hold less are not touched. It reports false where all fit. It is the level to which Cuts comes, without the files of all archives at once.
func Level(held []Held, limit int64) (level int64, is bool) {
	total, top := int64(0), int64(0)
	for _, one := range held {
		total, top = total+one.Size, max(top, one.Size)
	}
	if limit <= 0 || total <= limit {
		return 0, false
	}
	// The sum grows with the level, so the highest one that fits is found by halving.
	low, high := int64(0), top
	for low < high {
		middle := low + (high-low+1)/2
		sum := int64(0)
		for _, one := range held {
			sum += max(min(one.Floor, one.Size), min(one.Size, middle))
		}
		if sum <= limit {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return low, true
}
