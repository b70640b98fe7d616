package main

import (
	"encoding/json"
	"fmt"

	kyvernov1 "github.com/kyverno/kyverno/api/kyverno/v1"
	kyvernov2 "github.com/kyverno/kyverno/api/kyverno/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// A testCase is one line of the input: one policy on one resource.
type testCase struct {
	ID string `json:"id"`
	// Mode is empty (evaluate), "rules" (expand the policy) or "load" (offline load check).
	Mode             string                       `json:"mode"`
	Policy           json.RawMessage              `json:"policy"`
	Resource         json.RawMessage              `json:"resource"`
	Old              json.RawMessage              `json:"old"`
	Operation        string                       `json:"operation"`
	User             *kyvernov2.RequestInfo       `json:"user"`
	NamespaceLabels  map[string]string            `json:"namespaceLabels"`
	Subresource      string                       `json:"subresource"`
	GroupVersionKind []string                     `json:"gvk"`
	Exceptions       []*kyvernov2.PolicyException `json:"exceptions"`
	Mocks            mocks                        `json:"mocks"`
	// Kind that rules are computed for (mode "rules"); empty: all controllers.
	Kind string `json:"kind"`
	// Repeat is the number of evaluations, to find answers that depend on Go's random map
	// order. 0 and 1 are the same.
	Repeat int `json:"repeat"`
}

// mocks are the outside data of context entries. An absent kind of data is not configured at
// all, and its entries are dropped.
type mocks struct {
	// Values are in the context under their names, like values of rules in a values file.
	Values map[string]any `json:"values"`
	// ConfigMaps by "namespace/name".
	ConfigMaps map[string]*corev1.ConfigMap `json:"configMaps"`
	// APICalls are bodies by "METHOD path".
	APICalls map[string]json.RawMessage `json:"apiCalls"`
	// GlobalEntries are values of global context entries by name.
	GlobalEntries map[string]any `json:"globalEntries"`
}

// An answer is one line of the output.
type answer struct {
	ID    string         `json:"id"`
	Rules []ruleResponse `json:"rules"`
	// Panic is the text of a panic of the engine; Rules is then empty.
	Panic string `json:"panic,omitempty"`
	// Error says why the case could not be run, for example a policy that does not decode.
	Error string `json:"error,omitempty"`
	// Nanos is the time of the (first) evaluation, without decoding the policy.
	Nanos int64 `json:"nanos"`
	// Variants are the other answers of repeated evaluations.
	Variants [][]ruleResponse `json:"variants,omitempty"`
	Autogen  []kyvernov1.Rule `json:"autogen,omitempty"`
	Load     *loadAnswer      `json:"load,omitempty"`
}

type ruleResponse struct {
	Policy     string            `json:"policy"`
	Rule       string            `json:"rule"`
	Status     string            `json:"status"`
	Message    string            `json:"message"`
	Properties map[string]string `json:"properties,omitempty"`
}

type loadAnswer struct {
	OK       bool     `json:"ok"`
	Error    string   `json:"error,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

func decodePolicy(data []byte) (kyvernov1.PolicyInterface, error) {
	var head metav1.TypeMeta
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, err
	}
	var policy kyvernov1.PolicyInterface
	switch head.Kind {
	case "ClusterPolicy":
		policy = &kyvernov1.ClusterPolicy{}
	case "Policy":
		policy = &kyvernov1.Policy{}
	default:
		return nil, fmt.Errorf("expected a ClusterPolicy or Policy, found kind %q", head.Kind)
	}
	if err := json.Unmarshal(data, policy); err != nil {
		return nil, err
	}
	return policy, nil
}

// decodeObject keeps integers within range as int64, as the API machinery does.
func decodeObject(data []byte) (map[string]any, error) {
	if len(data) == 0 {
		return nil, nil
	}
	var object map[string]any
	if err := utiljson.Unmarshal(data, &object); err != nil {
		return nil, err
	}
	return object, nil
}
