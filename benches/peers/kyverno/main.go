// Command kyverno-oracle answers cases with Kyverno's own validate engine.
//
// It reads one case per line (NDJSON) from standard input and writes one answer per line, in the
// same order, to standard output. case.go describes the format of a case. With the argument
// "time" each line is a workload instead, see time.go.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func main() {
	log.SetLogger(logr.Discard())
	handle := answerLine
	if len(os.Args) > 1 && os.Args[1] == "time" {
		handle = timeLine
	}
	if err := run(handle); err != nil {
		fmt.Fprintln(os.Stderr, "kyverno-oracle:", err)
		os.Exit(1)
	}
}

// run answers every line. It flushes the output whenever no further line is waiting, so that
// the program at the other end of the pipes is never blocked.
func run(handle func([]byte) (any, error)) error {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) == 0 {
			return out.Flush() // the end of the input
		}
		if err != nil {
			return fmt.Errorf("a line without an end: %w", err)
		}
		answer, err := handle(line)
		if err != nil {
			return err
		}
		if err := encoder.Encode(answer); err != nil {
			return err
		}
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
}
