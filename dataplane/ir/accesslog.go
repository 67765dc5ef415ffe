package ir

import "fmt"

// AccessLog says which requests of a socket are logged. The zero value logs all.
type AccessLog struct {
	Mode LogMode
	// SamplePercent is the share of the requests that are no errors which LogAll
	// logs, 1 to 100; 0 means 100.
	SamplePercent uint8
}

// LogMode says which requests are logged.
type LogMode uint8

// The modes of an access log. Zero means LogAll.
const (
	// LogAll logs each request, or a share of them.
	LogAll LogMode = iota + 1
	// LogErrors logs those that were answered with 400 or above, and those whose
	// answer is not complete.
	LogErrors
	// LogOff logs none.
	LogOff
)

// String returns the mode's name.
func (m LogMode) String() string {
	switch m {
	case 0, LogAll:
		return "All"
	case LogErrors:
		return "Errors"
	case LogOff:
		return "Off"
	}
	return "unknown"
}

func (l AccessLog) validate() error {
	switch {
	case l.Mode > LogOff:
		return fmt.Errorf("the access log's mode %d is unknown", l.Mode)
	case l.SamplePercent > 100:
		return fmt.Errorf("a sample of %d percent", l.SamplePercent)
	}
	return nil
}

func (w *digest) accessLog(l AccessLog) {
	w.num(uint64(l.Mode))
	w.num(uint64(l.SamplePercent))
}
