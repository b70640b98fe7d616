//! How an engine evaluates.

use kpvm_semantics::limits::Limits;

/// Configuration of an [`Engine`](super::Engine).
///
/// ```
/// use kpvm::engine::Config;
///
/// let config = Config::new().with_runtime_expressions(false);
/// assert!(!config.runtime_expressions());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    limits: Limits,
    runtime_expressions: bool,
    projection: bool,
    plans: bool,
}

impl Config {
    /// The default configuration: default limits, everything on.
    pub const fn new() -> Self {
        Self {
            limits: Limits::DEFAULT,
            runtime_expressions: true,
            projection: true,
            plans: true,
        }
    }

    /// Limits on documents and evaluations.
    #[must_use]
    pub const fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Whether expressions whose text is known only at run time (`{{ a.{{ b }} }}`) are parsed
    /// and evaluated. If not, rules that have one are errors. On by default.
    #[must_use]
    pub const fn with_runtime_expressions(mut self, allowed: bool) -> Self {
        self.runtime_expressions = allowed;
        self
    }

    /// Whether only those parts of a JSON object are built that rules can look at; the syntax of
    /// the rest is checked. Verdicts, messages and errors do not depend on it. On by default.
    #[must_use]
    pub const fn with_projection(mut self, allowed: bool) -> Self {
        self.projection = allowed;
        self
    }

    /// Whether the checks of all rules for a kind are done in one walk over the object, instead
    /// of rule by rule. Verdicts, messages and errors do not depend on it, but rules that need
    /// not run use no fuel. On by default.
    #[must_use]
    pub const fn with_plans(mut self, allowed: bool) -> Self {
        self.plans = allowed;
        self
    }

    /// Limits on documents and evaluations.
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Whether expressions made at run time are evaluated.
    pub const fn runtime_expressions(&self) -> bool {
        self.runtime_expressions
    }

    /// Whether objects are read in part.
    pub const fn projection(&self) -> bool {
        self.projection
    }

    /// Whether the checks of rules are done together.
    pub const fn plans(&self) -> bool {
        self.plans
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::new()
    }
}
