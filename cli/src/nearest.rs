//! The nearest of some names to one that was not found.

/// The names that a person may have meant, nearest first: at most a third of the
/// characters differ, or one name stands inside the other.
pub fn nearest<'n>(name: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let length = name.chars().count();
    let lower = name.to_lowercase();
    let distance = |candidate: &str| {
        let candidate = candidate.to_lowercase();
        let longer = length.max(candidate.chars().count());
        let distance = strsim::osa_distance(&lower, &candidate);
        let is_inside = length > 2 && candidate.contains(&lower)
            || candidate.len() > 2 && lower.contains(&candidate);
        (distance <= longer / 3 || is_inside).then_some(distance)
    };
    names
        .into_iter()
        .filter_map(|candidate| distance(candidate).map(|distance| (distance, candidate)))
        .min()
        .map(|(_, candidate)| candidate)
}

/// `did you mean …?`, where something is near.
pub fn did_you_mean<'n>(name: &str, names: impl IntoIterator<Item = &'n str>) -> Option<String> {
    nearest(name, names).map(|near| format!("did you mean `{near}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        let names = ["check-ambient-mode", "require-labels", "web", "a"];
        for (name, expected) in [
            ("check-amblient-mode", Some("check-ambient-mode")),
            ("Require-Labels", Some("require-labels")),
            ("require-label", Some("require-labels")),
            ("labels", Some("require-labels")),
            ("wbe", Some("web")),
            ("disallow-latest", None),
            ("zz", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, names), expected, "{name}");
        }
    }
}
