package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"strings"

	engineapi "github.com/kyverno/kyverno/pkg/engine/api"
	enginecontext "github.com/kyverno/kyverno/pkg/engine/context"
	"github.com/kyverno/kyverno/pkg/engine/factories"
	gctxstore "github.com/kyverno/kyverno/pkg/globalcontext/store"
	corev1 "k8s.io/api/core/v1"
)

// contextLoaderFactory returns loaders that read outside data only from the mocks.
func (m *mocks) contextLoaderFactory() engineapi.ContextLoaderFactory {
	var resolver engineapi.ConfigmapResolver
	if m.ConfigMaps != nil {
		resolver = configMaps(m.ConfigMaps)
	}
	var options []factories.ContextLoaderFactoryOptions
	if m.Values != nil {
		options = append(options, factories.WithInitializer(m.addValues))
	}
	if m.GlobalEntries != nil {
		options = append(options, factories.WithGlobalContextStore(globalEntries(m.GlobalEntries)))
	}
	return factories.DefaultContextLoaderFactory(resolver, options...)
}

func (m *mocks) addValues(jsonContext enginecontext.Interface) error {
	for name, value := range m.Values {
		var key strings.Builder
		writer := csv.NewWriter(&key) // a name may hold dots
		writer.Comma = '.'
		if err := writer.Write([]string{name}); err != nil {
			return err
		}
		writer.Flush()
		if err := jsonContext.AddVariable(strings.TrimSuffix(key.String(), "\n"), value); err != nil {
			return err
		}
	}
	return nil
}

type configMaps map[string]*corev1.ConfigMap

func (c configMaps) Get(_ context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	if configMap, ok := c[namespace+"/"+name]; ok {
		return configMap, nil
	}
	return nil, fmt.Errorf("configmaps %q not found", name)
}

// An apiClient answers raw calls; no other method of a client is used.
type apiClient struct {
	engineapi.Client
	mocks *mocks
}

func (m *mocks) client() engineapi.Client {
	if m.APICalls == nil {
		return nil
	}
	return apiClient{mocks: m}
}

func (c apiClient) RawAbsPath(_ context.Context, path, method string, _ io.Reader) ([]byte, error) {
	if body, ok := c.mocks.APICalls[method+" "+path]; ok {
		return body, nil
	}
	return nil, fmt.Errorf("no answer to %s %s", method, path)
}

type globalEntries map[string]any

func (g globalEntries) Get(name string) (gctxstore.Entry, bool) {
	value, ok := g[name]
	return globalEntry{value}, ok
}

type globalEntry struct{ value any }

func (e globalEntry) Get(projection string) (any, error) {
	if projection == "" {
		return e.value, nil
	}
	members, ok := e.value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("no projection %q: the value is not a map", projection)
	}
	value, ok := members[projection]
	if !ok {
		return nil, fmt.Errorf("no projection %q", projection)
	}
	return value, nil
}

func (globalEntry) Stop() {}
