package ir

// Filter changes or answers a request. Exactly one of the pointers is set.
type Filter struct {
	// Order is the filter's place in its chain, from low to high, the same for
	// the request's and the response's way. Two filters of one chain never have
	// the same one.
	Order int

	RequestHeaders  *HeaderChange
	ResponseHeaders *HeaderChange
	Redirect        *Redirect
	Rewrite         *Rewrite
}

// HeaderChange is applied in the order Set, Add, Remove.
type HeaderChange struct {
	Set    []Header // one value is left
	Add    []Header // appended as a further value
	Remove []string
}

// Header is one field.
type Header struct {
	Name  string
	Value string
}

// Redirect answers the request with a Location.
type Redirect struct {
	Scheme   string // "" keeps the request's
	Hostname string // "" keeps the request's
	// Port 0 derives the port: a Scheme that is set means its well-known port,
	// else the port of the socket that took the request.
	Port   uint16
	Path   *PathChange // nil keeps the path
	Status int         // 301, 302, 303, 307 or 308
}

// Rewrite changes what is sent to the backend.
type Rewrite struct {
	Hostname string      // "" keeps the request's
	Path     *PathChange // nil keeps the path
}

// PathChange replaces the whole path, or the prefix that the rule matched.
type PathChange struct {
	// Prefix tells that Value replaces the matched prefix only.
	Prefix bool
	Value  string
}
