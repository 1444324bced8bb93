package fleet

// ConsumerImage is an image for programs of the caller's, by the name that
// docs/consumers.md uses for the reader's program. Fill ConsumerDir before a pod
// of it starts.
const ConsumerImage = "example.com/my-consumer"

// ConsumerDir is what is at / in ConsumerImage. Pods run as other users: make
// directories and programs readable and executable for all.
func (f *Fleet) ConsumerDir() string { return f.path("consumer") }
