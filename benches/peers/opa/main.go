// Command opa-peer times OPA in this process.
//
// It reads one workload per line (NDJSON) from standard input and writes one timing per line.
// The query is prepared once, as in a server; a round goes from the bytes of the resource to
// the entries of the set that the query returns.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/util"
)

type workload struct {
	Module string `json:"module"`
	// Query returns a set of texts.
	Query string `json:"query"`
	// Resource is text, so that its bytes are timed as they were sent.
	Resource string `json:"resource"`
	Rounds   int    `json:"rounds"`
}

type timing struct {
	MedianNanos int64    `json:"medianNanos"`
	Failed      []string `json:"failed"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "opa-peer:", err)
		os.Exit(1)
	}
}

func run() error {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	encoder := json.NewEncoder(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) == 0 {
			return nil // the end of the input
		}
		if err != nil {
			return fmt.Errorf("a line without an end: %w", err)
		}
		var w workload
		if err := json.Unmarshal(line, &w); err != nil {
			return err
		}
		result, err := w.time()
		if err != nil {
			return err
		}
		if err := encoder.Encode(result); err != nil {
			return err
		}
	}
}

func (w *workload) time() (*timing, error) {
	if w.Rounds < 1 {
		return nil, fmt.Errorf("expected at least 1 round, found %d", w.Rounds)
	}
	ctx := context.Background()
	query, err := rego.New(rego.Query(w.Query), rego.Module("module.rego", w.Module)).PrepareForEval(ctx)
	if err != nil {
		return nil, err
	}
	resource := []byte(w.Resource)
	times := make([]int64, 0, w.Rounds)
	var results rego.ResultSet
	for range w.Rounds {
		start := time.Now()
		var input any
		if err := util.UnmarshalJSON(resource, &input); err != nil {
			return nil, err
		}
		if results, err = query.Eval(ctx, rego.EvalInput(input)); err != nil {
			return nil, err
		}
		times = append(times, time.Since(start).Nanoseconds())
	}
	slices.Sort(times)
	failed, err := texts(results)
	return &timing{MedianNanos: times[len(times)/2], Failed: failed}, err
}

func texts(results rego.ResultSet) ([]string, error) {
	failed := []string{}
	for _, result := range results {
		for _, expression := range result.Expressions {
			entries, ok := expression.Value.([]any)
			if !ok {
				return nil, fmt.Errorf("expected a set of texts, found %T", expression.Value)
			}
			for _, entry := range entries {
				failed = append(failed, fmt.Sprint(entry))
			}
		}
	}
	slices.Sort(failed)
	return failed, nil
}
