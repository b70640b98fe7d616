//! `validate.podSecurity` (docs/spec/pod-security.md).

use serde_json::Value;

use crate::context::Context;
use crate::engine::{Evaluation, Response};
use crate::failure::Failure;

pub(crate) fn evaluate(
    _evaluation: &Evaluation<'_>,
    _body: &Value,
    _context: &mut Context<'_>,
) -> Result<Option<Response>, Failure> {
    Err(Failure::NotDone("podSecurity"))
}
