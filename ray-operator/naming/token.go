package naming

// TokenHash is a hash of a token that tells it from another and no more: of 25 bits, so
// that it says next to nothing about which token it is.
func TokenHash(token string) string {
	if token == "" {
		return ""
	}
	return hash("token", token)[:shortHash]
}
