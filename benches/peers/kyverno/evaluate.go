package main

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	kyvernov1 "github.com/kyverno/kyverno/api/kyverno/v1"
	kyvernov2 "github.com/kyverno/kyverno/api/kyverno/v2"
	"github.com/kyverno/kyverno/pkg/autogen"
	"github.com/kyverno/kyverno/pkg/config"
	"github.com/kyverno/kyverno/pkg/engine"
	engineapi "github.com/kyverno/kyverno/pkg/engine/api"
	"github.com/kyverno/kyverno/pkg/engine/jmespath"
	"github.com/kyverno/kyverno/pkg/engine/policycontext"
	"github.com/kyverno/kyverno/pkg/exceptions"
	imageverifycache "github.com/kyverno/kyverno/pkg/image/verification/cache"
	policyvalidation "github.com/kyverno/kyverno/pkg/validation/policy"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// reportsServiceAccount is the account whose writes the load check treats as Kyverno's own.
const reportsServiceAccount = "system:serviceaccount:kyverno:kyverno-reports-controller"

var (
	configuration = config.NewDefaultConfiguration(false)
	interpreter   = jmespath.New(configuration)
)

func answerLine(line []byte) (any, error) {
	var c testCase
	if err := json.Unmarshal(line, &c); err != nil {
		return answer{Error: err.Error()}, nil
	}
	switch c.Mode {
	case "":
		return evaluateCase(&c), nil
	case "rules":
		return computeRules(&c), nil
	case "load":
		return checkLoad(&c), nil
	default:
		return nil, fmt.Errorf("case %s: unknown mode %q", c.ID, c.Mode)
	}
}

func evaluateCase(c *testCase) answer {
	first := evaluateOnce(c)
	for range c.Repeat - 1 {
		again := evaluateOnce(c)
		if again.Panic != "" {
			return again
		}
		if !reflect.DeepEqual(again.Rules, first.Rules) && !contains(first.Variants, again.Rules) {
			first.Variants = append(first.Variants, again.Rules)
		}
	}
	return first
}

func contains(all [][]ruleResponse, one []ruleResponse) bool {
	for _, other := range all {
		if reflect.DeepEqual(other, one) {
			return true
		}
	}
	return false
}

// evaluateOnce decodes everything again, because an evaluation may modify its inputs.
func evaluateOnce(c *testCase) (result answer) {
	result = answer{ID: c.ID, Rules: []ruleResponse{}}
	defer func() {
		if reason := recover(); reason != nil {
			result.Rules, result.Panic = []ruleResponse{}, fmt.Sprint(reason)
		}
	}()
	policy, err := decodePolicy(c.Policy)
	if err != nil {
		result.Error = err.Error()
		return result
	}
	policyContext, err := c.policyContext()
	if err != nil {
		result.Error = err.Error()
		return result
	}
	eng := newEngine(&c.Mocks, c.Exceptions)
	start := time.Now()
	response := eng.Validate(context.Background(), policyContext.WithPolicy(policy))
	result.Nanos = time.Since(start).Nanoseconds()
	for _, rule := range response.PolicyResponse.Rules {
		result.Rules = append(result.Rules, ruleResponse{
			Policy:     policy.GetName(),
			Rule:       rule.Name(),
			Status:     string(rule.Status()),
			Message:    rule.Message(),
			Properties: rule.Properties(),
		})
	}
	return result
}

type exceptionList []*kyvernov2.PolicyException

func (l exceptionList) List(labels.Selector) ([]*kyvernov2.PolicyException, error) {
	return l, nil
}

func newEngine(m *mocks, polexs []*kyvernov2.PolicyException) engineapi.Engine {
	isCluster := false
	return engine.NewEngine(
		configuration,
		interpreter,
		m.client(),
		nil,
		imageverifycache.DisabledImageVerifyCache(),
		m.contextLoaderFactory(),
		exceptions.New(exceptionList(polexs)),
		&isCluster,
	)
}

// policyContext is that of a background scan or, with a user, of an admission request.
func (c *testCase) policyContext() (*policycontext.PolicyContext, error) {
	newObject, err := decodeObject(c.Resource)
	if err != nil {
		return nil, err
	}
	oldObject, err := decodeObject(c.Old)
	if err != nil {
		return nil, err
	}
	operation := kyvernov1.AdmissionOperation(c.Operation)
	if operation == "" {
		operation = kyvernov1.Create
	}
	subject := unstructured.Unstructured{Object: newObject}
	if operation == kyvernov1.Delete {
		subject.Object = oldObject
	}
	policyContext, err := engine.NewPolicyContext(interpreter, subject, operation, c.User, configuration)
	if err != nil {
		return nil, err
	}
	if oldObject != nil && operation != kyvernov1.Delete {
		policyContext = policyContext.WithOldResource(unstructured.Unstructured{Object: oldObject})
		if err := policyContext.JSONContext().AddOldResource(oldObject); err != nil {
			return nil, err
		}
	}
	gvk := subject.GroupVersionKind()
	if len(c.GroupVersionKind) == 3 {
		gvk = schema.GroupVersionKind{
			Group:   c.GroupVersionKind[0],
			Version: c.GroupVersionKind[1],
			Kind:    c.GroupVersionKind[2],
		}
	}
	return policyContext.WithResourceKind(gvk, c.Subresource).WithNamespaceLabels(c.NamespaceLabels), nil
}

func computeRules(c *testCase) answer {
	policy, err := decodePolicy(c.Policy)
	if err != nil {
		return answer{ID: c.ID, Error: err.Error()}
	}
	return answer{ID: c.ID, Autogen: autogen.Default.ComputeRules(policy, c.Kind)}
}

func checkLoad(c *testCase) (result answer) {
	defer func() {
		if reason := recover(); reason != nil {
			result = answer{ID: c.ID, Panic: fmt.Sprint(reason)}
		}
	}()
	warnings, err := loadWarnings(c.Policy)
	load := &loadAnswer{OK: err == nil, Warnings: warnings}
	if err != nil {
		load.Error = err.Error()
	}
	return answer{ID: c.ID, Load: load}
}

func loadWarnings(data []byte) ([]string, error) {
	var head metav1.TypeMeta
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("DECODE %w", err)
	}
	if head.Kind == "PolicyException" {
		var exception kyvernov2.PolicyException
		if err := json.Unmarshal(data, &exception); err != nil {
			return nil, fmt.Errorf("DECODE %w", err)
		}
		return nil, exception.Validate().ToAggregate()
	}
	policy, err := decodePolicy(data)
	if err != nil {
		return nil, fmt.Errorf("DECODE %w", err)
	}
	return policyvalidation.Validate(policy, nil, nil, true, "", reportsServiceAccount)
}
