package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	kyvernov1 "github.com/kyverno/kyverno/api/kyverno/v1"
	"github.com/kyverno/kyverno/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A workload is timed from the bytes of a resource to the responses of all its policies,
// which are decoded once, as in an admission webhook.
type workload struct {
	Policies []json.RawMessage `json:"policies"`
	// Resource is text, so that its bytes are timed as they were sent.
	Resource string `json:"resource"`
	Rounds   int    `json:"rounds"`
}

type timing struct {
	MedianNanos int64          `json:"medianNanos"`
	Statuses    map[string]int `json:"statuses"`
}

func timeLine(line []byte) (any, error) {
	var w workload
	if err := json.Unmarshal(line, &w); err != nil {
		return nil, err
	}
	var policies []kyvernov1.PolicyInterface
	for _, data := range w.Policies {
		policy, err := decodePolicy(data)
		if err != nil {
			return nil, err
		}
		policies = append(policies, policy)
	}
	if w.Rounds < 1 {
		return nil, fmt.Errorf("expected at least 1 round, found %d", w.Rounds)
	}
	eng := newEngine(&mocks{}, nil)
	resource := []byte(w.Resource)
	var times []int64
	var statuses map[string]int
	for range w.Rounds {
		statuses = map[string]int{}
		start := time.Now()
		object, err := decodeObject(resource)
		if err != nil {
			return nil, err
		}
		policyContext, err := engine.NewPolicyContext(
			interpreter, unstructured.Unstructured{Object: object}, kyvernov1.Create, nil, configuration)
		if err != nil {
			return nil, err
		}
		for _, policy := range policies {
			response := eng.Validate(context.Background(), policyContext.WithPolicy(policy))
			for _, rule := range response.PolicyResponse.Rules {
				statuses[string(rule.Status())]++
			}
		}
		times = append(times, time.Since(start).Nanoseconds())
	}
	slices.Sort(times)
	return timing{MedianNanos: times[len(times)/2], Statuses: statuses}, nil
}
