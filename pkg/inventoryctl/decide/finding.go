package decide

// State is what became of one step or check.
type State string

// The states. Only Missing and Problem ask for something to be done.
const (
	Done          State = "done"
	Missing       State = "missing"
	NotVisible    State = "not visible to you"
	NotConfigured State = "not configured"

	OK      State = "ok"
	Problem State = "problem"
)

// Finding is one step of a chain, or one check.
type Finding struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	Text  string `json:"text"`

	// Fix is a command, or what else to do; empty if nothing is to be done.
	Fix string `json:"fix,omitempty"`
}

// IsWrong reports whether something is to be done.
func (f Finding) IsWrong() bool { return f.State == Missing || f.State == Problem }

// FirstWrong returns the first finding that is wrong, nil if there is none.
func FirstWrong(findings []Finding) *Finding {
	for i := range findings {
		if findings[i].IsWrong() {
			return &findings[i]
		}
	}
	return nil
}

// Presence is whether there is something, and whether the reader may know.
type Presence struct {
	Found, Hidden bool
}

// Explanation is a chain of steps, and whether all that may be seen of them is well.
type Explanation struct {
	Cluster   string    `json:"cluster"`
	Namespace string    `json:"namespace,omitempty"`
	Property  string    `json:"property,omitempty"`
	Steps     []Finding `json:"steps"`
}

func done(name, text string) Finding { return Finding{Name: name, State: Done, Text: text} }

func missing(name, text, fix string) Finding {
	return Finding{Name: name, State: Missing, Text: text, Fix: fix}
}

func notConfigured(name, text string) Finding {
	return Finding{Name: name, State: NotConfigured, Text: text}
}

// notVisible says that something would tell, but may not be read.
func notVisible(name, kinds string) Finding {
	return Finding{Name: name, State: NotVisible, Text: "you may not read " + kinds}
}
