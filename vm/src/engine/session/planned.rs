//! An evaluation that uses the plan of its kind.

use kpvm_format::Tables;
use kpvm_semantics::limits::Limits;

use crate::document::projection::{Bystander, Part, Projection};
use crate::document::{NodeId, View};
use crate::engine::plans::{KnownKind, Reading};
use crate::engine::request::Request;
use crate::plan::{Proof, Survey, TextWalk, test_nodes};

/// An evaluation with the plan of a kind.
pub(super) struct Planned<'p> {
    pub(super) known: &'p KnownKind<'p>,
    pub(super) survey: &'p mut Survey,
    pub(super) reading: Reading,
}

impl<'p> Planned<'p> {
    pub(super) fn is_slim(&self) -> bool {
        self.reading == Reading::Slim
    }

    pub(super) fn projection(&self) -> Option<Projection<'p>> {
        self.known.projection(self.reading)
    }

    /// The walk over the parts that are not built, if the plan is to decide.
    pub(super) fn walk<'w>(
        &'w mut self,
        tables: &'w Tables<'w>,
        request: &Request<'_>,
    ) -> Option<TextWalk<'w>> {
        let plan = self.known.plan.as_ref()?;
        self.survey.begin(plan);
        self.is_slim().then_some(TextWalk {
            plan,
            tables,
            numbers: request.numbers,
            survey: self.survey,
        })
    }

    /// Walks over the parts that are built; returns what is known then.
    pub(super) fn prove(
        &mut self,
        main: NodeId,
        view: View<'_>,
        tables: &Tables<'_>,
        limits: &Limits,
    ) -> Option<Proof<'_>> {
        let plan = self.known.plan.as_ref()?;
        let has_text_walk = self.is_slim();
        test_nodes(plan, main, view, tables, has_text_walk, self.survey);
        let proof = Proof {
            plan,
            survey: self.survey,
        };
        proof
            .is_within(limits.rule_fuel, limits.request_fuel)
            .then_some(proof)
    }
}

pub(super) fn part_of<'p>(
    projection: Option<Projection<'p>>,
    walk: Option<&'p mut TextWalk<'_>>,
) -> Option<Part<'p>> {
    Some(Part {
        projection: projection?,
        bystander: walk.map(|walk| walk as &mut dyn Bystander),
    })
}
