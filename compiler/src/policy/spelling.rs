//! Suggestions for misspelled names.

/// The nearest known name, if a misspelling is plausible.
pub(crate) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    known
        .iter()
        .map(|candidate| (edit_distance(name, candidate), *candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 4)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Levenshtein distance, case-insensitive.
fn edit_distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (line, from) in left.to_lowercase().chars().enumerate() {
        let mut diagonal = line;
        let mut before = line + 1;
        for (cell, to) in row.iter_mut().skip(1).zip(&right) {
            let substituted = diagonal + usize::from(from != *to);
            diagonal = *cell;
            *cell = substituted.min(before + 1).min(*cell + 1);
            before = *cell;
        }
        if let Some(first) = row.first_mut() {
            *first = line + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_a_plausible_misspelling() {
        let known = ["kinds", "names", "namespaces", "namespaceSelector"];
        assert_eq!(nearest("kind", &known), Some("kinds"));
        assert_eq!(nearest("nameSpaces", &known), Some("namespaces"));
        assert_eq!(
            nearest("namespacesSelector", &known),
            Some("namespaceSelector")
        );
        assert_eq!(nearest("zzz", &known), None);
        assert_eq!(edit_distance("kitten", "sitting"), 3);
    }
}
