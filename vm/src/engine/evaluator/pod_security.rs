//! Findings of podSecurity rules (docs/spec/pod-security.md §8).

use std::cell::OnceCell;

use kpvm_format::table::Rule;
use kpvm_semantics::quote::quote_json;

use super::{Evaluator, Judgement, Mode};
use crate::document::NodeId;
use crate::engine::response::{ControlTexts, Status};
use crate::machine::{Findings, Setting, Shown};

impl Evaluator<'_, '_> {
    /// docs/spec/pod-security.md §8.
    pub(super) fn judge_findings(
        &mut self,
        rule: &Rule,
        instruction: u32,
        setting: Setting<'_>,
    ) -> Judgement {
        let findings = std::mem::take(&mut self.machine.findings);
        let shown = Shown {
            tables: self.tables,
            view: self.world.buffer.view(self.texts, self.tables.symbols),
        };
        let (name, level) = (setting.subject.rule_name, self.tables.text(rule.message));
        let mut message =
            format!("Validation rule '{name}' failed. It violates PodSecurity \"{level}\": ");
        findings.message(shown, self.limits.message_bytes, &mut message);
        let (path, value) = findings
            .first(shown)
            .unwrap_or((String::new(), NodeId::MISSING));
        let mut judgement = self.fixed(Status::Fail, &message);
        if self.mode == Mode::Report {
            judgement.controls = Some(self.control_texts(&findings));
        }
        self.machine.findings = findings;
        self.with_detail(judgement, &path, value, instruction, setting)
    }

    /// What reports show about failing controls (docs/spec/pod-security.md §11).
    fn control_texts(&mut self, findings: &Findings) -> ControlTexts {
        let tables = self.tables;
        let shown = Shown {
            tables,
            view: self.world.buffer.view(self.texts, tables.symbols),
        };
        let object = self.objects.main().unwrap_or(NodeId::MISSING);
        let images = OnceCell::new();
        let image_of = |name: &String| {
            let images =
                images.get_or_init(|| crate::images::images_by_container(&shown.view, object));
            quote_json(images.get(name).unwrap_or(name))
        };
        let mut ids: Vec<&str> = Vec::new();
        let mut json: Vec<String> = Vec::new();
        for number in findings.controls() {
            let Some(record) = tables.controls.get(number.index()) else {
                continue;
            };
            let (id, name) = (tables.text(record.id), tables.text(record.name));
            let names = findings.container_names(number, shown);
            let quoted =
                names.map(|names| names.iter().map(image_of).collect::<Vec<_>>().join(","));
            let quoted = quoted.map_or("null".into(), |list| format!("[{list}]"));
            json.push(format!(
                "{{\"ID\":{},\"Name\":{},\"Images\":{quoted}}}",
                quote_json(id),
                quote_json(name),
            ));
            ids.push(id);
        }
        let json = format!("[{}]", json.join(","));
        let fits = json.len() <= self.limits.string_bytes;
        ControlTexts {
            ids: self.append(&ids.join(",")),
            json: self.append(if fits { &json } else { "[]" }),
        }
    }
}
