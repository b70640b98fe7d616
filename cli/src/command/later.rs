//! Options of `kyverno apply` that are not supported yet. They are accepted so that they
//! can be rejected by name, with an alternative (docs/spec/cli.md §9.1). None is ignored
//! silently.

use std::path::PathBuf;

const HEADING: &str = "Options of kyverno apply that are not supported yet";

const CLUSTER: &str = "clusters are not asked yet: pass what one holds, e.g. kubectl get deployments,pods -A -o yaml | kpvm apply POLICIES -r -";
const GIT: &str = "repositories are not fetched: clone it and give the directory";
const PAYLOAD: &str = "requests to other servers need policies that are not supported yet";
const MUTATION: &str = "it is for mutation of existing resources, which is not supported yet";

/// Options that are not supported yet.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = HEADING)]
pub struct LaterArguments {
    /// Evaluate the objects of a cluster
    #[arg(short, long, hide_short_help = true)]
    pub cluster: bool,
    /// Evaluate the cluster-scoped objects of a cluster
    #[arg(long, hide_short_help = true)]
    pub cluster_wide_resources: bool,
    /// Namespace in the cluster
    #[arg(short, long, hide_short_help = true)]
    pub namespace: Option<String>,
    /// Kubeconfig file for the cluster
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub context: Option<String>,
    /// Continue if the cluster cannot list a kind
    #[arg(long, hide_short_help = true)]
    pub continue_on_error: bool,
    /// Number of kinds listed concurrently
    #[arg(long, value_name = "NUMBER", hide_short_help = true)]
    pub concurrent: Option<u32>,
    /// Number of objects listed per request
    #[arg(long, value_name = "NUMBER", hide_short_help = true)]
    pub batch_size: Option<u32>,
    /// Show how long listing the cluster took
    #[arg(long, hide_short_help = true)]
    pub show_performance: bool,
    /// Branch of a repository with policies
    #[arg(short = 'b', long, value_name = "BRANCH", hide_short_help = true)]
    pub git_branch: Option<String>,
    /// User of the repository
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub username: Option<String>,
    /// Password of that user
    #[arg(long, value_name = "PASSWORD", hide_short_help = true)]
    pub password: Option<String>,
    /// Access image registries
    #[arg(long, hide_short_help = true)]
    pub registry: bool,
    /// HTTP requests
    #[arg(
        long,
        value_name = "FILE",
        value_delimiter = ',',
        hide_short_help = true
    )]
    pub http_payload: Vec<PathBuf>,
    /// Envoy requests
    #[arg(
        long,
        value_name = "FILE",
        value_delimiter = ',',
        hide_short_help = true
    )]
    pub envoy_payload: Vec<PathBuf>,
    /// Resources mutated by policies for existing resources
    #[arg(
        long = "target-resource",
        alias = "target-resources",
        value_name = "FILE",
        value_delimiter = ',',
        hide_short_help = true
    )]
    pub target_resources: Vec<PathBuf>,
}

impl LaterArguments {
    /// Options that would change the result, each with an alternative.
    pub fn refused(&self) -> Vec<(&'static str, &'static str)> {
        let registry = "registries are not asked: give the data under the name of the context entry in a values file";
        let given = [
            (self.cluster, "--cluster", CLUSTER),
            (
                self.cluster_wide_resources,
                "--cluster-wide-resources",
                CLUSTER,
            ),
            (self.namespace.is_some(), "--namespace", CLUSTER),
            (self.kubeconfig.is_some(), "--kubeconfig", CLUSTER),
            (self.context.is_some(), "--context", CLUSTER),
            (self.git_branch.is_some(), "--git-branch", GIT),
            (self.username.is_some(), "--username", GIT),
            (self.password.is_some(), "--password", GIT),
            (self.registry, "--registry", registry),
            (!self.http_payload.is_empty(), "--http-payload", PAYLOAD),
            (!self.envoy_payload.is_empty(), "--envoy-payload", PAYLOAD),
            (
                !self.target_resources.is_empty(),
                "--target-resource",
                MUTATION,
            ),
        ];
        chosen(given)
    }

    /// Options that have no effect without one that is rejected.
    pub fn unused(&self) -> Vec<(&'static str, &'static str)> {
        let cluster = "it only says how a cluster is read";
        let given = [
            (self.continue_on_error, "--continue-on-error", cluster),
            (self.concurrent.is_some(), "--concurrent", cluster),
            (self.batch_size.is_some(), "--batch-size", cluster),
            (self.show_performance, "--show-performance", cluster),
        ];
        chosen(given)
    }
}

fn chosen<const N: usize>(
    given: [(bool, &'static str, &'static str); N],
) -> Vec<(&'static str, &'static str)> {
    let chosen = given.into_iter().filter(|(is_given, ..)| *is_given);
    chosen.map(|(_, option, reason)| (option, reason)).collect()
}
