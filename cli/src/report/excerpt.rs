//! Source excerpts of a failure: the line of the object, and the line of the policy that
//! demands it.
//!
//! Nothing of a Secret is shown. Of a line that contains several objects, only the failed
//! one is shown.

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use crate::diagnostics::Excerpt;
use crate::place::Place;
use crate::report::Run;
use crate::scan::{Check, Finding, Object, Outcome};
use crate::text::clean;

/// Renders the excerpt, with colours and without a trailing newline; `None` if no line may
/// be shown. `label` describes the failure.
pub fn render(run: &Run<'_>, finding: &Finding, label: &str) -> Option<String> {
    let (check, object) = (finding.check.as_ref()?, run.scan.object(finding)?);
    let level = match finding.outcome {
        Outcome::Fail | Outcome::Error => Level::ERROR,
        Outcome::Warn => Level::WARNING,
        Outcome::Pass | Outcome::Skip => Level::NOTE,
    };
    let found = of_object(run, check, object)?;
    let group = Group::with_level(level).element(snippet(
        &found,
        &check.resource,
        AnnotationKind::Primary,
        label,
    ));
    let demanded = of_policy(run, &check.policy);
    let group = match &demanded {
        Some(excerpt) => group.element(snippet(
            excerpt,
            &check.policy,
            AnnotationKind::Context,
            "demanded here",
        )),
        None if check.policy.line > 0 => group.element(
            Origin::path(clean(&check.policy.file))
                .line(check.policy.line as usize)
                .char_column(check.policy.column as usize),
        ),
        None => group,
    };
    Some(Renderer::styled().render(&[group]))
}

fn snippet<'e>(
    excerpt: &'e Excerpt<'e>,
    place: &'e Place,
    kind: AnnotationKind,
    label: &str,
) -> Snippet<'e, Annotation<'e>> {
    let annotation = kind.span(excerpt.start..excerpt.end);
    Snippet::source(&*excerpt.text)
        .line_start(place.line as usize)
        .path(clean(&place.file))
        .annotation(annotation.label(clean(label).into_owned()))
}

fn of_object<'r>(run: &Run<'r>, check: &Check, object: &Object) -> Option<Excerpt<'r>> {
    if object.kind == "Secret" {
        return None;
    }
    let text = &run.resources.sources.file(check.location.source).text;
    let excerpt = Excerpt::within(text, check.location.span, object.location.span)?;
    (!excerpt.text.trim().is_empty()).then_some(excerpt)
}

/// From the location to the end of its line: bundles record only where the demand begins.
fn of_policy<'r>(run: &Run<'r>, place: &Place) -> Option<Excerpt<'r>> {
    let mut files = run.policies?.sources.iter();
    let (_, file) = files.find(|(_, file)| file.name == place.file)?;
    let line = file
        .text
        .lines()
        .nth((place.line as usize).checked_sub(1)?)?;
    let mut characters = line.char_indices();
    let (column, _) = characters.nth((place.column as usize).checked_sub(1)?)?;
    Excerpt::around(line, column, line.trim_end().len())
}
