//! YAML as kubectl and Kyverno read it.
