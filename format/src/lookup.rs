//! Looking up what the compiler derived: topics, plans, projections and demands.

use crate::Tables;
use crate::outside::OutsideDemand;
use crate::plan::{PlanView, ProjectionPlace, Topic};
use crate::table::{DEFAULT_NAMESPACE, NONE, Policy, PolicyFlags, Text};

impl<'t> Tables<'t> {
    /// The topic of an object, by the symbols of its kind and resource, [`NONE`] for unknown
    /// ones. `None` for a kind under the resource of another kind.
    pub fn topic(&self, kind: u32, resource: u32) -> Option<&'t Topic> {
        let find = |kind: u32, resource: u32| {
            let key = (kind, resource);
            let found = self
                .topics
                .binary_search_by_key(&key, |topic| (topic.kind.get(), topic.resource.get()));
            found.ok().and_then(|number| self.topics.get(number))
        };
        // Every name that rules have, kind or resource, has a topic without a resource.
        if resource == NONE {
            return find(kind, NONE).or_else(|| self.topics.last());
        }
        let named = |name: u32| find(name, NONE).map_or(NONE, |_| name);
        find(kind, resource).or_else(|| find(named(kind), named(resource)))
    }

    /// The places of a projection.
    pub fn projection(&self, number: u32) -> Option<&'t [ProjectionPlace]> {
        let range = self.projections.get(number as usize)?;
        Some(Self::range(self.projection_places, *range))
    }

    /// A plan.
    pub fn plan(&self, number: u32) -> Option<PlanView<'t>> {
        let record = self.plans.get(number as usize)?;
        Some(PlanView {
            record,
            spots: Self::range(self.plan_spots, record.spots),
            slots: Self::range(self.plan_slots, record.slots),
            bodies: Self::range(self.plan_bodies, record.bodies),
            tests: self.plan_tests,
            breaks: self.plan_breaks,
        })
    }

    /// Namespace of the only objects that a policy applies to, if it is namespaced. Without a
    /// written one a `Policy` applies to those of `default` (docs/spec/policies.md §5.7), one
    /// of CEL to all.
    pub fn only_namespace(&self, policy: &Policy) -> Option<&'t str> {
        let is_of_cel = policy.flags & PolicyFlags::RESOURCES != 0;
        match self.text(policy.namespace) {
            _ if policy.flags & PolicyFlags::NAMESPACED == 0 => None,
            "" if is_of_cel => None,
            "" => Some(DEFAULT_NAMESPACE),
            namespace => Some(namespace),
        }
    }

    /// What a rule asks for, each thing once.
    pub fn demands_of_rule(&self, rule: u32) -> &'t [OutsideDemand] {
        let all = self.outside_demands;
        let start = all.partition_point(|demand| demand.rule.get() < rule);
        let end = all.partition_point(|demand| demand.rule.get() <= rule);
        all.get(start..end).unwrap_or(&[])
    }

    /// A text of `outside_text`; empty if it is not inside.
    pub fn outside_text(&self, text: Text) -> &'t str {
        let start = text.offset.get() as usize;
        let end = start.wrapping_add(text.length.get() as usize);
        let bytes = self.outside_text.get(start..end).unwrap_or(&[]);
        std::str::from_utf8(bytes).unwrap_or("")
    }
}
