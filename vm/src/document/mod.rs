//! Documents: values read from JSON or YAML into one flat, reusable buffer of nodes.
