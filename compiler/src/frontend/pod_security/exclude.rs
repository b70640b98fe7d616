//! `podSecurity.exclude`, of a rule and of an exception (docs/spec/pod-security.md §7): an
//! entry runs the checks again over a part of the pod, and the findings there exempt the
//! pod from the same findings.

use kpvm_format::instruction::ListSlot;
use kpvm_format::instruction::immediate::TextOf;
use kpvm_syntax::tree::{Tree, TreeValue};

use super::checks::{CONTAINERS, spec_fields};
use super::controls::CONTROLS;
use crate::frontend::emitter::Emitter;
use crate::ir::{Exclusion, ExclusionId, Operation, Register, TextListId};
use crate::policy::read::{items, text_of};

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Exclude {
    /// `controlName`
    pub control: String,
    /// `images`, wildcards.
    pub images: Vec<String>,
    /// `restrictedField`; empty if absent.
    pub field: String,
    /// `values`, wildcards.
    pub values: Vec<String>,
}

impl Exclude {
    /// Reads one entry.
    pub fn read(tree: &Tree) -> Self {
        let texts = |key| {
            items(tree, key)
                .iter()
                .map(|item| item.as_str().unwrap_or_default().to_owned())
                .collect()
        };
        Self {
            control: text_of(tree, "controlName"),
            images: texts("images"),
            field: text_of(tree, "restrictedField"),
            values: texts("values"),
        }
    }
}

impl Emitter<'_> {
    /// Removes the findings that entries exempt, one entry after the other. Only the
    /// remaining findings decide after this.
    pub fn pod_security_exclusions(&mut self, excludes: &[Exclude]) {
        // A name that no control has exempts nothing.
        let known = |exclude: &&Exclude| {
            !exclude.control.is_empty()
                && CONTROLS
                    .iter()
                    .any(|control| control.name == exclude.control)
        };
        let excludes: Vec<&Exclude> = excludes.iter().filter(known).collect();
        if excludes.is_empty() {
            return;
        }
        let pod = self.load(|dst| Operation::LoadChecked { dst });
        for exclude in excludes {
            let exclusion = self.exclusion(exclude);
            let next = self.block.label();
            self.block.push(Operation::JumpUnlessFound {
                exclusion,
                target: next,
            });
            let part = if exclude.images.is_empty() {
                self.bare_pod(pod)
            } else {
                self.pod_of_images(pod, &exclude.images)
            };
            let exempt = Operation::Exempt {
                src: part,
                exclusion,
            };
            self.block.push(exempt);
            self.block.place(next);
        }
    }

    fn exclusion(&mut self, exclude: &Exclude) -> ExclusionId {
        let values = match exclude.values.as_slice() {
            [] => None,
            values => Some(self.module.text_list(values)),
        };
        let entry = Exclusion {
            name: exclude.control.clone(),
            field: exclude.field.clone(),
            values,
            is_by_owner: !exclude.images.is_empty(),
        };
        let exclusions = &mut self.module.exclusions;
        let known = exclusions.iter().find(|(_, known)| **known == entry);
        match known.map(|(id, _)| id) {
            Some(known) => known,
            None => exclusions.push(entry),
        }
    }

    /// The pod with a single container that has only a name.
    fn bare_pod(&mut self, pod: Register) -> Register {
        let name = TreeValue::String("fake".into());
        let container = self.constant(&name);
        let container = self.map_of(&[("name", container)]);
        let list = self.list_of(&[container]);
        let spec = self.member(pod, "spec");
        let mut members = vec![("containers", list)];
        for field in spec_fields() {
            members.push((field, self.member(spec, field)));
        }
        let spec = self.map_of(&members);
        let metadata = self.member(pod, "metadata");
        self.map_of(&[("spec", spec), ("metadata", metadata)])
    }

    /// A pod with only the containers of some images.
    fn pod_of_images(&mut self, pod: Register, images: &[String]) -> Register {
        let images = self.module.text_list(images);
        let spec = self.member(pod, "spec");
        let lists = CONTAINERS.map(|list| {
            let containers = self.member(spec, list);
            (list, self.containers_of_images(containers, images))
        });
        let spec = self.map_of(&lists);
        self.map_of(&[("spec", spec)])
    }

    fn containers_of_images(&mut self, containers: Register, images: TextListId) -> Register {
        let list = self.block.enter_list();
        self.block.push(Operation::ListBegin { list });
        let slot = self.block.enter_loop();
        let (start, end) = (self.block.label(), self.block.label());
        let (meant, next) = (self.block.label(), self.block.label());
        let container = self.block.register();
        self.block.push(Operation::LoopBegin {
            loop_slot: slot,
            list: containers,
            item: container,
            target: end,
        });
        self.block.place(start);
        let image = self.member(container, "image");
        self.block.push(Operation::JumpIfText {
            src: image,
            of: TextOf::Value,
            texts: images,
            target: meant,
        });
        self.block.jump(next);
        self.block.place(meant);
        self.block.push(Operation::ListPush {
            list,
            src: container,
        });
        self.block.place(next);
        self.block.push(Operation::LoopNext {
            loop_slot: slot,
            item: container,
            target: start,
        });
        self.block.leave_loop();
        self.block.place(end);
        let containers = self.load(|dst| Operation::ListEnd { dst, list });
        self.block.leave_list();
        containers
    }

    /// A member of a map; missing if the value is not a map.
    pub(super) fn member(&mut self, map: Register, key: &str) -> Register {
        let key = self.module.symbol(key);
        self.load(|dst| Operation::LoadField { dst, src: map, key })
    }

    /// A map of values; null if they are all missing.
    pub(super) fn map_of(&mut self, members: &[(&str, Register)]) -> Register {
        let keys: Vec<&str> = members.iter().map(|(key, _)| *key).collect();
        let keys = self.module.text_list(&keys);
        let list = self.push_all(members.iter().map(|(_, value)| *value));
        let map = self.load(|dst| Operation::MapEnd { dst, list, keys });
        self.block.leave_list();
        map
    }

    fn list_of(&mut self, items: &[Register]) -> Register {
        let list = self.push_all(items.iter().copied());
        let items = self.load(|dst| Operation::ListEnd { dst, list });
        self.block.leave_list();
        items
    }

    fn push_all(&mut self, values: impl Iterator<Item = Register>) -> ListSlot {
        let list = self.block.enter_list();
        self.block.push(Operation::ListBegin { list });
        for value in values {
            self.block.push(Operation::ListPush { list, src: value });
        }
        list
    }
}
