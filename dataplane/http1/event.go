package http1

// Event is what a parser has found in its input.
type Event uint8

// The events.
const (
	None Event = iota // more input is needed
	Head              // the head is complete and the message is filled
	Data              // a piece of the body
	End               // the message is over
)

// String returns the event's name in lower case.
func (e Event) String() string {
	switch e {
	case None:
		return "none"
	case Head:
		return "head"
	case Data:
		return "data"
	case End:
		return "end"
	}
	return "unknown"
}
