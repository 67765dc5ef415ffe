package ir

// ApplyResult is what a data plane did with a snapshot. The zero value says
// that all of it is served.
type ApplyResult struct {
	// Err is set when the snapshot was refused as a whole: the data plane goes on
	// with the one that it had.
	Err error
	// Sockets has an entry, by [Socket.Name], for each socket that could not be
	// opened. The error wraps the system's errno. The rest is served.
	Sockets map[string]error
	// Restart are the settings of [Snapshot.Process] that the process does not run
	// with, and would when it is started again. The rest is served, so it is no
	// failure: to apply again would change nothing.
	Restart []Setting
}

// Setting is one that a process has from its start on.
type Setting struct {
	// Name is that of the parameter: workers or pinning.
	Name string
	// Runs is what the process has, and Asked what the snapshot wants, or, where it
	// says nothing, the flags.
	Runs, Asked string
}

// OK tells whether the whole snapshot is served.
func (r ApplyResult) OK() bool { return r.Err == nil && len(r.Sockets) == 0 }
