// Command greeter says where it runs, and ends: what a Job does.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Println("hello from", os.Getenv("HOSTNAME"))
}
