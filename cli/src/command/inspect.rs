//! `kpc inspect`: shows the content of a bundle, and what its rules read.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::PathBuf;

use kpvm_format::disassemble::path;
use kpvm_format::meta::Meta;
use kpvm_format::site::{Segment, SitePathId};
use kpvm_format::table::{self, NONE, Rule, RuleFlags};
use kpvm_format::{Bundle, FORMAT_VERSION, Tables};
use serde::Serialize;

use crate::command::load_bundle;
use crate::demands::{self, Demands, Request};
use crate::report::structured::{Omitted, omitted};
use crate::serialised::write_json;
use crate::stream::{EXIT_BAD_INPUT, EXIT_OK, Streams};
use crate::text::{clean, count};

/// Arguments of `kpc inspect`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The bundle
    #[arg(value_name = "FILE")]
    pub bundle: PathBuf,
    /// Format of the output
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Format,
}

/// Output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Format {
    /// For people
    #[default]
    Text,
    /// One JSON object
    Json,
}

/// Content of a bundle. The order of fields is stable.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Facts<'b> {
    digest: String,
    compiler: &'b str,
    format: u32,
    bytes: usize,
    policies: Vec<PolicyEntry<'b>>,
    /// Rules tried for each kind; `*` stands for every kind.
    index: Vec<IndexEntry<'b>>,
    omitted_rules: Vec<Omitted<'b>>,
    sections: Vec<Section>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PolicyEntry<'b> {
    name: &'b str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'b str,
    kind: &'b str,
    api_version: &'b str,
    rules: Vec<RuleEntry<'b>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RuleEntry<'b> {
    name: &'b str,
    generated: bool,
    kinds: Vec<&'b str>,
    instructions: usize,
    /// Paths that the rule reads; `*` stands for each item of a list or map.
    reads: BTreeSet<String>,
    /// Exceptions that may skip it, as `namespace/name`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    exceptions: Vec<String>,
    #[serde(flatten)]
    demands: Demands,
}

#[derive(Debug, Serialize)]
struct IndexEntry<'b> {
    kind: &'b str,
    /// Rules tried for every object of the kind.
    rules: usize,
    /// Rules tried for objects of one namespace, name or operation.
    keyed: usize,
}

#[derive(Debug, Serialize)]
struct Section {
    name: &'static str,
    bytes: usize,
}

/// Prints the content of a bundle.
///
/// # Errors
/// Fails if the writer fails.
pub fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> io::Result<u8> {
    let Some(bundle) = load_bundle(&arguments.bundle, streams)? else {
        return Ok(EXIT_BAD_INPUT);
    };
    let meta = bundle.meta();
    let facts = facts(&bundle, meta);
    match arguments.output {
        Format::Text => write_text(&facts, streams.out)?,
        Format::Json => write_json(&facts, streams.out)?,
    }
    Ok(EXIT_OK)
}

fn facts<'b>(bundle: &'b Bundle<'_>, meta: &'b Meta) -> Facts<'b> {
    let tables = bundle.tables();
    let sections = bundle.section_sizes().into_iter();
    Facts {
        digest: bundle.digest(),
        compiler: &meta.compiler,
        format: FORMAT_VERSION,
        bytes: bundle.as_bytes().len(),
        policies: policies(tables, meta),
        index: index(tables),
        omitted_rules: omitted(&meta.omitted),
        sections: sections
            .map(|(name, bytes)| Section { name, bytes })
            .collect(),
    }
}

fn policies<'b>(tables: Tables<'b>, meta: &'b Meta) -> Vec<PolicyEntry<'b>> {
    let entry = |(policy, meta): (
        &kpvm_format::table::Policy,
        &'b kpvm_format::meta::PolicyMeta,
    )| PolicyEntry {
        name: tables.text(policy.name),
        namespace: tables.text(policy.namespace),
        kind: &meta.kind,
        api_version: &meta.api_version,
        rules: (policy.rules.start.get()..)
            .zip(Tables::range(tables.rules, policy.rules))
            .map(|(number, rule)| rule_entry(tables, number, rule))
            .collect(),
    };
    tables
        .policies
        .iter()
        .zip(&meta.policies)
        .map(entry)
        .collect()
}

fn rule_entry<'b>(tables: Tables<'b>, rule_number: u32, rule: &Rule) -> RuleEntry<'b> {
    let blocks = [rule.match_block, rule.body_block];
    let blocks = blocks.iter().filter_map(|block| {
        let number = block.get();
        Some((number, tables.blocks.get(number as usize)?))
    });
    let mut reads = BTreeSet::new();
    let mut instructions = 0;
    for (number, block) in blocks {
        instructions += block.length.get() as usize;
        reads.extend(tables.loaded_paths(block).map(|id| path(&tables, id.0)));
        let sites = tables.sites_of(number);
        reads.extend(sites.map(|site| site_path(&tables, site.path)));
    }
    RuleEntry {
        name: tables.text(rule.name),
        generated: rule.flags & RuleFlags::GENERATED != 0,
        kinds: Tables::range(tables.index_kinds, rule.kinds)
            .iter()
            .map(|&kind| tables.text(kind))
            .collect(),
        instructions,
        reads: without_prefixes(reads),
        exceptions: Tables::range(tables.exceptions, rule.exceptions)
            .iter()
            .map(|exception| tables.exception_key(exception))
            .collect(),
        demands: demands::of_rule(&tables, rule_number),
    }
}

/// Path that a failed check at this instruction would report, with `*` for positions.
fn site_path(tables: &Tables<'_>, path: SitePathId) -> String {
    let mut text = String::new();
    tables.path_segments(path, &mut |segment| {
        text.push_str(match segment {
            Segment::Text(text) => text,
            Segment::Loop(_) => "*",
        });
    });
    text.trim_end_matches('/').to_owned()
}

/// Removes paths that are prefixes of others: `/spec` adds nothing to `/spec/replicas`.
fn without_prefixes(paths: BTreeSet<String>) -> BTreeSet<String> {
    let is_prefix = |path: &String| {
        let inside = format!("{path}/");
        paths.iter().any(|other| other.starts_with(&inside))
    };
    paths
        .iter()
        .filter(|path| !path.is_empty() && !is_prefix(path))
        .cloned()
        .collect()
}

fn index(tables: Tables<'_>) -> Vec<IndexEntry<'_>> {
    let entries = tables.index.iter().map(|entry| IndexEntry {
        kind: match entry.kind.get() {
            NONE => "*",
            kind => tables.symbols.text(kpvm_format::symbol::SymbolId(kind)),
        },
        rules: entry.rules.length.get() as usize,
        keyed: keyed_rules(entry, &tables),
    });
    let mut entries: Vec<IndexEntry<'_>> = entries.collect();
    entries.sort_by_key(|entry| (entry.kind == "*", entry.kind));
    entries
}

/// Number of rules tried only for objects with one of their keys.
fn keyed_rules(entry: &table::IndexEntry, tables: &Tables<'_>) -> usize {
    let nodes = entry.keyed.iter();
    let nodes = nodes.flat_map(|&nodes| Tables::range(tables.index_nodes, nodes));
    let rules = nodes.flat_map(|node| Tables::range(tables.index_rules, node.rules));
    rules
        .map(|rule| rule.get())
        .collect::<BTreeSet<u32>>()
        .len()
}

fn write_text(facts: &Facts<'_>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "digest    sha256:{}", facts.digest)?;
    writeln!(
        out,
        "compiler  kpc {}, format {}",
        clean(facts.compiler),
        facts.format
    )?;
    writeln!(out, "size      {} bytes", facts.bytes)?;
    writeln!(out, "\npolicies")?;
    for policy in &facts.policies {
        write!(out, "  ")?;
        if !policy.namespace.is_empty() {
            write!(out, "{}/", clean(policy.namespace))?;
        }
        writeln!(
            out,
            "{} ({} {})",
            clean(policy.name),
            clean(policy.api_version),
            clean(policy.kind)
        )?;
        for rule in &policy.rules {
            let kinds: Vec<_> = rule.kinds.iter().map(|kind| clean(kind)).collect();
            let generated = if rule.generated { ", generated" } else { "" };
            write!(out, "    ")?;
            if !rule.name.is_empty() {
                write!(out, "{}: ", clean(rule.name))?;
            }
            let kinds = kinds.join(", ");
            writeln!(
                out,
                "{kinds} ({} instructions{generated})",
                rule.instructions
            )?;
            for path in &rule.reads {
                writeln!(out, "      reads {}", clean(path))?;
            }
            for exception in &rule.exceptions {
                writeln!(out, "      excepted by {}", clean(exception))?;
            }
            write_demands(&rule.demands, out)?;
        }
    }
    writeln!(out, "\nindex (rules tried for each kind)")?;
    for entry in &facts.index {
        write!(out, "  {:<28} {:>5}", clean(entry.kind), entry.rules)?;
        match entry.keyed {
            0 => writeln!(out)?,
            keyed => writeln!(out, ", and {keyed} by namespace, name or operation")?,
        }
    }
    write_external_data(facts, out)?;
    if facts.omitted_rules.is_empty() {
        writeln!(out, "omitted rules: none")?;
    } else {
        writeln!(out, "omitted rules")?;
    }
    for rule in &facts.omitted_rules {
        let (policy, name) = (clean(rule.policy), clean(rule.rule));
        writeln!(
            out,
            "  {policy}/{name}: {} ({})",
            clean(rule.reason),
            clean(rule.place)
        )?;
    }
    writeln!(out, "\nsections (bytes)")?;
    for section in facts.sections.iter().filter(|section| section.bytes > 0) {
        writeln!(out, "  {:<28} {:>7}", section.name, section.bytes)?;
    }
    Ok(())
}

fn write_demands(demands: &Demands, out: &mut dyn Write) -> io::Result<()> {
    for request in &demands.external_data {
        writeln!(out, "      asks for {}", shown(request))?;
    }
    for (asks, what) in [
        (demands.time, "the time"),
        (demands.randomness, "random numbers"),
        (demands.host_addresses, "the addresses of hosts"),
    ] {
        if asks {
            writeln!(out, "      asks for {what}")?;
        }
    }
    if demands.runtime_expressions {
        writeln!(out, "      reads expressions at run time")?;
    }
    Ok(())
}

/// `configMap name=a, namespace=<computed>`
fn shown(request: &Request) -> String {
    let fields = request.fields.iter().map(|field| {
        let value = match field.value.as_str() {
            Some(text) => clean(text).into_owned(),
            None => clean(&field.value.to_string()).into_owned(),
        };
        format!("{}={value}", clean(&field.name))
    });
    let fields: Vec<String> = fields.collect();
    format!("{} {}", request.kind, fields.join(", "))
}

/// Each request of the bundle once, with the number of rules that make it.
fn write_external_data(facts: &Facts<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut rules: BTreeMap<String, usize> = BTreeMap::new();
    for rule in facts.policies.iter().flat_map(|policy| &policy.rules) {
        for request in &rule.demands.external_data {
            *rules.entry(shown(request)).or_default() += 1;
        }
    }
    if rules.is_empty() {
        return writeln!(out, "\nexternal data: none");
    }
    writeln!(out, "\nexternal data")?;
    for (request, rules) in rules {
        writeln!(out, "  {request} ({})", count(rules, "rule"))?;
    }
    Ok(())
}
