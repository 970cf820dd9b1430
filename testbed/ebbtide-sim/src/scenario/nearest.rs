//! "Did you mean": the known name that is nearest to a misspelt one.

/// A question to append to a message that rejects `wanted`; empty if no known name is near. A name
/// is near if at most every third letter is wrong, missing, added or swapped.
pub fn did_you_mean<'n>(wanted: &str, known: impl IntoIterator<Item = &'n str>) -> String {
    let near = (wanted.chars().count() / 3).max(1);
    let distance = |name: &&str| strsim::damerau_levenshtein(wanted, name);
    // Long texts are not names, and comparing them would take long.
    let candidates = known.into_iter().filter(|name| wanted.len() <= 2 * name.len() + 1);
    match candidates.min_by_key(distance).filter(|name| distance(name) <= near) {
        Some(name) => format!("; did you mean '{name}'?"),
        None => String::new(),
    }
}

/// The suggestion for a TOML parser's message about a name: "unknown field `a`, expected one of `b`,
/// `c`".
pub(super) fn of_parser(message: &str) -> String {
    if !message.starts_with("unknown ") {
        return String::new();
    }
    let mut names = message.split('`').skip(1).step_by(2);
    names.next().map_or_else(String::new, |wanted| did_you_mean(wanted, names))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_near_name_is_suggested() {
        let known = ["fasor", "fasor-token", "cocoa", "default"];
        assert_eq!(did_you_mean("fasor-tokn", known), "; did you mean 'fasor-token'?");
        assert_eq!(did_you_mean("coca", known), "; did you mean 'cocoa'?");
        assert_eq!(did_you_mean("defautl", known), "; did you mean 'default'?");
        assert_eq!(did_you_mean("newreno", known), "");
        assert_eq!(did_you_mean("", known), "");
        assert_eq!(did_you_mean(&"x".repeat(1_000_000), known), "");
    }

    #[test]
    fn a_parsers_message_is_understood() {
        let message = "unknown field `mtuu`, expected one of `header`, `mtu`, `up`";
        assert_eq!(of_parser(message), "; did you mean 'mtu'?");
        assert_eq!(of_parser("invalid type: string `mtuu`, expected `mtu`"), "");
    }
}
