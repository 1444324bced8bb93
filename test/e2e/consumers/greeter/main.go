// Command greeter prints where it runs, and exits, like a Job.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Println("hello from", os.Getenv("HOSTNAME"))
}
