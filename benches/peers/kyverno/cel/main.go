// Command cel-oracle answers CEL expressions as Kyverno does in `validate.cel` of a ClusterPolicy
// and in a ValidatingPolicy, without the rest of Kyverno's engine: it builds in minutes.
//
// It reads one question per line (NDJSON) from standard input and writes one answer per line, in
// the same order, to standard output. The environments are built as in Kyverno's
// pkg/admissionpolicy/compiler.go and pkg/cel/policies/vpol/compiler/compiler.go, except for the
// libraries that need outside data (resource, globalContext, image data, http).
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/kyverno/kyverno/pkg/cel/compiler"
	"github.com/kyverno/sdk/extensions/cel/libs/gzip"
	"github.com/kyverno/sdk/extensions/cel/libs/hash"
	"github.com/kyverno/sdk/extensions/cel/libs/image"
	celjson "github.com/kyverno/sdk/extensions/cel/libs/json"
	"github.com/kyverno/sdk/extensions/cel/libs/math"
	"github.com/kyverno/sdk/extensions/cel/libs/random"
	"github.com/kyverno/sdk/extensions/cel/libs/time"
	"github.com/kyverno/sdk/extensions/cel/libs/transform"
	"github.com/kyverno/sdk/extensions/cel/libs/user"
	"github.com/kyverno/sdk/extensions/cel/libs/x509"
	"github.com/kyverno/sdk/extensions/cel/libs/yaml"
	"github.com/kyverno/sdk/extensions/cel/utils"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// A question is one line of the input.
type question struct {
	// Object is the resource; if absent, the one of the question before.
	Object json.RawMessage `json:"object"`
	// Expression is a validation.
	Expression string `json:"expression"`
}

// An answer is one line of the output.
type answer struct {
	// Rule is the answer of validate.cel.
	Rule outcome `json:"rule"`
	// Policy is the answer of a ValidatingPolicy.
	Policy outcome `json:"policy"`
}

type outcome struct {
	// Status is pass, fail, error or refused (the policy does not compile).
	Status  string `json:"status"`
	Message string `json:"message"`
}

type condition struct{ expression string }

func (c *condition) GetExpression() string    { return c.expression }
func (c *condition) ReturnTypes() []*cel.Type { return []*cel.Type{cel.BoolType} }

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "cel-oracle:", err)
		os.Exit(1)
	}
}

func run() error {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	kubernetes, err := kubernetesCompiler()
	if err != nil {
		return err
	}
	kyverno, err := kyvernoEnv()
	if err != nil {
		return err
	}
	var object map[string]any
	for {
		line, err := in.ReadBytes('\n')
		if len(line) == 0 {
			return out.Flush()
		}
		if err != nil {
			return fmt.Errorf("a line without an end: %w", err)
		}
		var asked question
		if err := json.Unmarshal(line, &asked); err != nil {
			return err
		}
		if asked.Object != nil {
			object = nil
			if err := utiljson.Unmarshal(asked.Object, &object); err != nil {
				return err
			}
		}
		reply := answer{
			Rule:   guard(func() outcome { return evaluateRule(kubernetes, asked.Expression, object) }),
			Policy: guard(func() outcome { return evaluatePolicy(kyverno, asked.Expression, object) }),
		}
		if err := encoder.Encode(reply); err != nil {
			return err
		}
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
}

// guard turns a panic of the engine into an answer.
func guard(evaluate func() outcome) (result outcome) {
	defer func() {
		if reason := recover(); reason != nil {
			result = outcome{Status: "panic", Message: fmt.Sprint(reason)}
		}
	}()
	return evaluate()
}

func kubernetesCompiler() (*plugincel.CompositedCompiler, error) {
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	extended, err := base.Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions:        compiler.OrValueCompatEnvOptions(),
	})
	if err != nil {
		return nil, err
	}
	return plugincel.NewCompositedCompiler(extended)
}

// evaluateRule answers as pkg/engine/handlers/validation/validate_cel.go does, and the validator of
// Kubernetes' plugin/policy/validating that it calls.
func evaluateRule(composited *plugincel.CompositedCompiler, expression string, object map[string]any) outcome {
	options := plugincel.OptionalVariableDeclarations{HasAuthorizer: true}
	accessors := []plugincel.ExpressionAccessor{&condition{expression}}
	evaluator := composited.CompileCondition(accessors, options, environment.StoredExpressions)
	resource := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(object)}
	kind := resource.GroupVersionKind()
	attributes := admission.NewAttributesRecord(resource, nil, kind, resource.GetNamespace(),
		resource.GetName(), schema.GroupVersionResource{}, "", admission.Create, nil, false, nil)
	versioned, err := admission.NewVersionedAttributes(attributes, kind,
		admission.NewObjectInterfacesFromScheme(runtime.NewScheme()))
	if err != nil {
		return outcome{Status: "error", Message: err.Error()}
	}
	results, _, err := evaluator.ForInput(composited.CreateContext(context.Background()), versioned, nil,
		plugincel.OptionalVariableBindings{}, nil, celconfig.RuntimeCELCostBudget)
	switch {
	case err != nil:
		return outcome{Status: "fail", Message: err.Error()}
	case results[0].Error != nil:
		return outcome{Status: "fail", Message: results[0].Error.Error()}
	case results[0].EvalResult != types.True:
		return outcome{Status: "fail", Message: "failed expression: " + strings.TrimSpace(expression)}
	}
	return outcome{Status: "pass"}
}

func kyvernoEnv() (*cel.Env, error) {
	first := version.MajorMinor(1, 0)
	options := append(compiler.DefaultEnvOptionsWithCompat(),
		cel.Variable(compiler.NamespaceObjectKey, compiler.NamespaceType.CelType()),
		cel.Variable(compiler.ObjectKey, cel.DynType),
		cel.Variable(compiler.OldObjectKey, cel.DynType),
		cel.Variable(compiler.RequestKey, compiler.RequestType.CelType()),
		cel.Types(compiler.NamespaceType.CelType()),
		cel.Types(compiler.RequestType.CelType()),
		cel.Variable(compiler.VariablesKey, compiler.VariablesType),
	)
	base := environment.MustBaseEnvSet(first)
	env, err := base.Env(environment.StoredExpressions)
	if err != nil {
		return nil, err
	}
	variables := compiler.NewVariablesProvider(env.CELTypeProvider())
	declarations, err := apiservercel.NewDeclTypeProvider(compiler.NamespaceType, compiler.RequestType).
		EnvOptions(variables)
	if err != nil {
		return nil, err
	}
	libraries := []cel.EnvOption{
		image.Lib(image.Latest()),
		user.Lib(user.Latest()),
		hash.Lib(hash.Latest()),
		math.Lib(math.Latest()),
		celjson.Lib(&celjson.JsonImpl{}, celjson.Latest()),
		yaml.Lib(&yaml.YamlImpl{}, yaml.Latest()),
		random.Lib(random.Latest()),
		x509.Lib(x509.Latest()),
		time.Lib(time.Latest()),
		transform.Lib(transform.Latest()),
		gzip.Lib(gzip.Latest()),
	}
	extended, err := base.Extend(
		environment.VersionedOptions{IntroducedVersion: first, EnvOptions: append(options, declarations...)},
		environment.VersionedOptions{IntroducedVersion: first, EnvOptions: libraries},
	)
	if err != nil {
		return nil, err
	}
	return extended.Env(environment.StoredExpressions)
}

// evaluatePolicy answers as pkg/cel/policies/vpol/{compiler,engine} do.
func evaluatePolicy(env *cel.Env, expression string, object map[string]any) outcome {
	path := field.NewPath("spec").Child("validations").Index(0)
	validation, errs := compiler.CompileValidation(path, env, admissionregistrationv1.Validation{Expression: expression})
	if errs != nil {
		return outcome{Status: "refused", Message: errs.ToAggregate().Error()}
	}
	result, _, err := validation.Program.ContextEval(context.Background(), map[string]any{
		compiler.NamespaceObjectKey: nil,
		compiler.ObjectKey:          object,
		compiler.OldObjectKey:       map[string]any{},
		compiler.RequestKey:         map[string]any{},
	})
	if err != nil {
		return outcome{Status: "error", Message: "error: " + err.Error()}
	}
	passed, err := utils.ConvertToNative[bool](result)
	switch {
	case err != nil:
		return outcome{Status: "error", Message: "error: " + err.Error()}
	case !passed:
		return outcome{Status: "fail", Message: "CEL expression validation failed at index 0"}
	}
	return outcome{Status: "pass", Message: "success"}
}
