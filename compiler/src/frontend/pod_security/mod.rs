//! `validate.podSecurity` (docs/spec/pod-security.md): the resource is decoded into the
//! types of Kubernetes, the checks of the level and version run over its pod, and the
//! exclusions remove what they exempt.
//!
//! - [`controls`]: the table of what the standards demand
//! - [`checks`]: turns the table into a block
//! - [`exclude`]: exclusions, of rules and of exceptions
//! - [`shape`]: the types that resources are decoded into

pub mod checks;
pub mod controls;
pub mod exclude;
mod shape;

use kpvm_format::instruction::immediate::{ForeachDepth, TextOf};
use kpvm_syntax::tree::{Span, Tree};

use self::checks::Chosen;
use self::controls::{CONTROLS, Level};
use self::exclude::Exclude;
use super::emitter::Emitter;
use crate::ir::{
    AtSite, BlockId, Control, ControlId, Label, Module, Operation, Register, Site, SiteKind,
};
use crate::policy::read::{field, items, text_of};
use crate::source::{Location, SourceId};

/// A `podSecurity` block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodSecurity {
    /// `level` as written.
    pub level: String,
    /// `version` as written; empty if absent.
    pub version: String,
    /// `exclude`.
    pub excludes: Vec<Exclude>,
    /// Its place.
    span: Span,
}

impl PodSecurity {
    /// Reads a block; `None` for an empty one, which Kyverno ignores
    /// (docs/spec/pod-security.md §1).
    pub fn read(tree: &Tree) -> Option<Self> {
        let pod_security = Self {
            level: text_of(tree, "level"),
            version: text_of(tree, "version"),
            excludes: items(tree, "exclude").iter().map(Exclude::read).collect(),
            span: tree.span,
        };
        let has_text = !pod_security.level.is_empty() || !pod_security.version.is_empty();
        (has_text || field(tree, "exclude").is_some()).then_some(pod_security)
    }
}

/// The minor version of Kubernetes that a policy's version means; `latest` is greater than
/// any (docs/spec/pod-security.md §1).
///
/// # Errors
/// Kyverno's error for any other text.
pub fn parse_version(text: &str) -> Result<u32, &'static str> {
    const EXPECTED: &str = "must be \"latest\" or \"v1.x\"";
    if text.is_empty() || text == "latest" {
        return Ok(u32::MAX);
    }
    let minor = text.strip_prefix("v1.").ok_or(EXPECTED)?;
    let is_number = !minor.is_empty() && minor.bytes().all(|byte| byte.is_ascii_digit());
    let has_leading_zero = minor.len() > 1 && minor.starts_with('0');
    if !is_number || has_leading_zero {
        return Err(EXPECTED);
    }
    let minor: i64 = minor.parse().map_err(|_| EXPECTED)?;
    Ok(u32::try_from(minor).unwrap_or(u32::MAX))
}

/// The revisions that a level and a version demand (docs/spec/pod-security.md §3): of each
/// control the last one that is not newer, or else the first.
fn choose(level: Level, version: u32) -> Vec<(u32, u32)> {
    let controls = (0..).zip(CONTROLS);
    controls
        .filter(|(_, control)| control.level <= level)
        .map(|(number, control)| {
            let revisions = (0..).zip(control.revisions);
            let last = revisions
                .take_while(|(_, revision)| revision.since <= version)
                .last();
            (number, last.map_or(0, |(revision, _)| revision))
        })
        .collect()
}

impl Module {
    /// The block of checks for a level and a version.
    fn checks(&mut self, level: Level, version: u32, source: SourceId) -> BlockId {
        let key = choose(level, version);
        if let Some(&block) = self.interned.checks.get(&key) {
            return block;
        }
        self.add_controls();
        let chosen: Vec<Chosen> = key
            .iter()
            .filter_map(|&(number, revision)| {
                let control = CONTROLS.get(number as usize)?;
                Some((ControlId(number), control.revisions.get(revision as usize)?))
            })
            .collect();
        let block = checks::emitter(&chosen, source, self).block;
        let block = self.add(block);
        self.interned.checks.insert(key, block);
        block
    }

    /// Adds the controls, once; their numbers are their places in the list.
    fn add_controls(&mut self) {
        if !self.controls.is_unused() {
            return;
        }
        for control in CONTROLS {
            self.controls.push(Control {
                id: control.id,
                name: control.name,
                reason: control.reason,
                reasons: control.reasons,
                names_images: control.names_images,
            });
        }
    }
}

/// The kinds that are decoded like a Deployment (docs/spec/pod-security.md §2).
const LIKE_DEPLOYMENT: [&str; 6] = [
    "DaemonSet",
    "Deployment",
    "Job",
    "StatefulSet",
    "ReplicaSet",
    "ReplicationController",
];

impl Emitter<'_> {
    /// Lowers the body of a podSecurity rule.
    pub fn pod_security_rule(&mut self, rule: &PodSecurity) {
        let level = match rule.level.as_str() {
            "baseline" => Level::Baseline,
            _ => Level::Restricted,
        };
        let failed = self.block.label();
        match parse_version(&rule.version) {
            Ok(version) => {
                let checks = self.module.checks(level, version, self.source);
                self.check_pod(Some(checks), failed);
                self.pod_security_exclusions(&rule.excludes);
                self.end_with_findings(rule.span);
            }
            Err(expected) => {
                // A resource that cannot be decoded is the first error.
                self.check_pod(None, failed);
                let text = format!("failed to parse pod security api version: {expected}");
                self.fail(&text, failed);
            }
        }
        self.flush_cold();
        self.block.place(failed);
        self.block.push(Operation::ReturnFailed {
            depth: ForeachDepth(0),
        });
    }

    /// Ends according to the remaining findings.
    fn end_with_findings(&mut self, span: Span) {
        let location = Location {
            source: self.source,
            span,
        };
        let site = Site::new(SiteKind::Structure, "validate.podSecurity", location);
        self.block.push(Operation::ReturnFindings.site(site));
    }

    /// Decodes the resource by its kind and runs the checks over its pod.
    fn check_pod(&mut self, checks: Option<BlockId>, failed: Label) {
        let failed = self.wrapping("Error while getting new resource: ", false, failed);
        let [pod, deployment, cron_job, done] = [(); 4].map(|()| self.block.label());
        let kind = self.member(Register::SUBJECT, "kind");
        let kinds: [(&[&str], Label); 3] = [
            (&["Pod"], pod),
            (&LIKE_DEPLOYMENT, deployment),
            (&["CronJob"], cron_job),
        ];
        for (names, label) in kinds {
            let names = self.module.text_list(names);
            let jump = Operation::JumpIfText {
                src: kind,
                of: TextOf::Value,
                texts: names,
                target: label,
            };
            self.block.push(jump);
        }
        self.fail("could not find correct resource type", failed);
        self.block.place(pod);
        let subject = self.decoded("Pod", failed);
        self.run_checks(checks, subject, ["spec", "metadata"]);
        self.block.jump(done);
        self.block.place(deployment);
        let resource = self.decoded("Deployment", failed);
        let spec = self.member(resource, "spec");
        let subject = self.member(spec, "template");
        let places = ["spec.template.spec", "spec.template.metadata"];
        self.run_checks(checks, subject, places);
        self.block.jump(done);
        self.block.place(cron_job);
        let resource = self.decoded("CronJob", failed);
        let spec = self.member(resource, "spec");
        let job_template = self.member(spec, "jobTemplate");
        let job_spec = self.member(job_template, "spec");
        let template = self.member(job_spec, "template");
        // The annotations are those of the job's template, not of the pod's.
        let metadata = self.member(job_template, "metadata");
        let pod_spec = self.member(template, "spec");
        let subject = self.map_of(&[("spec", pod_spec), ("metadata", metadata)]);
        let places = [
            "spec.jobTemplate.spec.template.spec",
            "spec.jobTemplate.metadata",
        ];
        self.run_checks(checks, subject, places);
        self.block.place(done);
    }

    fn decoded(&mut self, shape: &str, failed: Label) -> Register {
        let shape = self.module.shape(shape);
        self.load(|dst| Operation::Conform {
            dst,
            src: Register::SUBJECT,
            shape,
            target: failed,
        })
    }

    fn run_checks(&mut self, checks: Option<BlockId>, subject: Register, places: [&str; 2]) {
        if let Some(checks) = checks {
            let places = self.module.text_list(&places);
            self.block.push(Operation::RunChecks {
                src: subject,
                block: checks,
                places,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// docs/spec/pod-security.md §1.
    #[test]
    fn versions() {
        for latest in ["", "latest"] {
            assert_eq!(parse_version(latest), Ok(u32::MAX), "{latest:?}");
        }
        assert_eq!(parse_version("v1.0"), Ok(0));
        assert_eq!(parse_version("v1.32"), Ok(32));
        for bad in [
            "1.25",
            "v1",
            "v1.",
            "v1.x",
            "v1.025",
            "v2.1",
            "v1.-1",
            "v1.2.3",
            "Latest",
            " v1.2",
            "v1.99999999999999999999",
        ] {
            assert!(parse_version(bad).is_err(), "{bad:?}");
        }
    }

    /// docs/spec/pod-security.md §4; revisions ascend, so that the last one that is not newer is
    /// found by stopping at the first newer one.
    #[test]
    fn controls_are_in_kyvernos_order() {
        let ids: Vec<&str> = CONTROLS.iter().map(|control| control.id).collect();
        let expected = [
            "allowPrivilegeEscalation",
            "appArmorProfile",
            "capabilities_baseline",
            "capabilities_restricted",
            "hostNamespaces",
            "hostPathVolumes",
            "hostPorts",
            "hostProbesAndHostLifecycle",
            "privileged",
            "procMount",
            "restrictedVolumes",
            "runAsNonRoot",
            "runAsUser",
            "seLinuxOptions",
            "seccompProfile_baseline",
            "seccompProfile_restricted",
            "sysctls",
            "windowsHostProcess",
        ];
        assert_eq!(ids, expected);
        for control in CONTROLS {
            assert!(control.revisions.is_sorted_by_key(|one| one.since));
            assert!(!control.revisions.is_empty(), "{}", control.id);
        }
    }
}
