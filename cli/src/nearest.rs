//! Suggestions for unknown names.

/// Names probably meant, nearest first: at most a third of the characters differ, or one
/// name contains the other.
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

/// `did you mean …?`, if a name is near.
pub fn did_you_mean<'n>(name: &str, names: impl IntoIterator<Item = &'n str>) -> Option<String> {
    nearest(name, names).map(|near| format!("did you mean `{near}`?"))
}

/// The name that the given one probably misspells: at most one letter in four differs,
/// which is rare between two kinds.
pub fn misspelled<'n>(name: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let lower = name.to_lowercase();
    let distance = |candidate: &str| {
        let shorter = name.chars().count().min(candidate.chars().count());
        let distance = strsim::osa_distance(&lower, &candidate.to_lowercase());
        (distance <= (shorter / 4).max(1)).then_some(distance)
    };
    names
        .into_iter()
        .filter_map(|candidate| distance(candidate).map(|distance| (distance, candidate)))
        .min()
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_that_are_misspelled_are_told_from_other_kinds() {
        for (name, other, expected) in [
            ("Deploymnt", "Deployment", true),
            ("Pods", "Pod", true),
            ("pod", "Pod", true),
            ("Ingess", "Ingress", true),
            ("Job", "Pod", false),
            ("Job", "CronJob", false),
            ("Role", "RoleBinding", false),
            ("ReplicaSet", "StatefulSet", false),
            ("ConfigMap", "Secret", false),
        ] {
            let found = misspelled(name, [other]);
            assert_eq!(found.is_some(), expected, "{name} {other}");
        }
    }

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
