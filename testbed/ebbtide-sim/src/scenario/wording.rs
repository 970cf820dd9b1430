//! Rewords a parser's messages in the terms of this tool.

use super::nearest::of_parser;

/// "invalid type: string \"abc\", expected u32" is in the program's terms. The user needs to know
/// what the key accepts and what was given. Other messages stay as they are, with the name that
/// was probably meant.
pub(super) fn in_words(message: &str) -> String {
    if message.starts_with("unknown field `ecn`") && !message.contains("expected one of") {
        return "ecn needs codel, fq-codel, pie or red".to_owned();
    }
    let expected = message
        .strip_prefix("invalid type: ")
        .or_else(|| message.strip_prefix("invalid value: "))
        .or_else(|| message.strip_prefix("unknown variant "))
        .and_then(|rest| rest.split_once(", expected "));
    match expected {
        None => format!("{message}{}", of_parser(message)),
        Some((got, takes)) => {
            format!("takes {}, not {}{}", taken(takes), given(got), of_parser(message))
        }
    }
}

/// The same for a key, which may accept less than its type.
pub(super) fn in_words_of(key: &str, message: &str) -> String {
    let words = in_words(message);
    if words.contains(KIND) {
        return format!("{words}: set {key}.kind");
    }
    match key.rsplit('.').next() {
        Some("count") => words.replace("0 to 4294967295", "1 to 1000000"),
        Some("spreading_factors") => words.replace("[1, 2]", "[7, 9]"),
        // The header of a table in place of that of an array of tables.
        Some(header) if ARRAYS.contains(&header) => match words.ends_with("not map") {
            true => format!("write [{header}]: there may be several"),
            false => words,
        },
        _ => words,
    }
}

/// Tables that stand in arrays, with the brackets of a single one.
const ARRAYS: [&str; 7] =
    ["[class]", "[link]", "[cross]", "[power_cut]", "[cell_outage]", "[device_move]", "[phase]"];

/// Queue disciplines, loss models and topologies are tables that the key `kind` distinguishes.
const KIND: &str = "a table with a kind";

/// The values that a key accepts.
fn taken(expected: &str) -> String {
    let words = match expected {
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "usize" => "a whole number from 0 on",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a string" => "text",
        "a sequence" => "a list such as [1, 2]",
        table if table.starts_with("struct ") => "a table",
        table if table.starts_with("internally tagged enum ") => KIND,
        other => return other.replace('`', ""),
    };
    words.to_owned()
}

/// The given value, without the parser's word for its type.
fn given(got: &str) -> &str {
    // Of a number that is too large.
    let got = got.strip_suffix(" as i128").or(got.strip_suffix(" as u128")).unwrap_or(got);
    let value = ["string ", "integer ", "floating point ", "boolean "];
    let value = value.into_iter().find_map(|kind| got.strip_prefix(kind)).unwrap_or(got);
    value.trim_matches('`')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_value_is_answered_with_what_the_key_takes() {
        for (parser, words) in [
            (
                "invalid type: string \"abc\", expected u32",
                "takes a whole number from 0 to 4294967295, not \"abc\"",
            ),
            (
                "invalid value: integer `-1`, expected a number of bytes such as 14100",
                "takes a number of bytes such as 14100, not -1",
            ),
            (
                "unknown variant `2`, expected one of `off`, `contikimac`",
                "takes one of off, contikimac, not 2",
            ),
            (
                "unknown variant `of`, expected one of `off`, `contikimac`",
                "takes one of off, contikimac, not of; did you mean 'off'?",
            ),
            (
                "invalid value: integer `99999999999` as i128, expected u32",
                "takes a whole number from 0 to 4294967295, not 99999999999",
            ),
            ("missing field `rate`", "missing field `rate`"),
            ("invalid type: integer `1`, expected struct Lora", "takes a table, not 1"),
            (
                "invalid type: string \"red\", expected internally tagged enum QueueSpec",
                "takes a table with a kind, not \"red\"",
            ),
        ] {
            assert_eq!(in_words(parser), words);
        }
    }

    #[test]
    fn a_table_with_a_kind_is_answered_with_the_key_to_set() {
        let parser = "invalid type: string \"red\", expected internally tagged enum QueueSpec";
        assert_eq!(
            in_words_of("network.up.queue", parser),
            "takes a table with a kind, not \"red\": set network.up.queue.kind"
        );
    }
}
