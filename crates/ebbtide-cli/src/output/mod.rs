//! The output of commands: text tables, JSON, and progress.

mod background;
mod classes;
#[cfg(target_os = "linux")]
pub(crate) mod emulation;
pub(crate) mod fit;
mod flows;
pub(crate) mod map;
mod mesh;
pub(crate) mod progress;
pub(crate) mod table;
mod wifi;

use std::io::{self, Write};

/// The maximum width of a control's name in the first column of a table.
const NAME: usize = 20;

/// The width of the first column: that of the longest name, from `least` to `most` characters.
fn name_width<'n>(names: impl Iterator<Item = &'n String>, least: usize, most: usize) -> usize {
    names.map(|name| name.chars().count()).filter(|n| *n <= most).fold(least, usize::max)
}

/// A first column. A name that is too long for it has a line of its own, so that the figures stay
/// in their columns.
fn name(name: &str, width: usize) -> String {
    let rest =
        if name.chars().count() > width { format!("\n{:width$}", "") } else { String::new() };
    format!("{name:width$}{rest}")
}

/// Wraps words into lines of at most `width` characters.
pub(crate) fn lines(words: &[&str], separator: &str, width: usize) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for word in words {
        match all.last_mut() {
            Some(line) if line.len() + separator.len() + word.len() <= width => {
                line.push_str(separator);
                line.push_str(word);
            }
            _ => all.push((*word).to_owned()),
        }
    }
    all
}

/// Text for a terminal of 80 columns, with `lead` before its first line and the same indentation
/// for the others.
pub(crate) fn paragraph(out: &mut impl Write, lead: &str, text: &str) -> io::Result<()> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match words.last_mut() {
            // A number and its unit stay on one line.
            Some(number) if is_unit(word) => number.extend([" ", word]),
            _ => words.push(word.to_owned()),
        }
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    for (i, line) in lines(&words, " ", 80 - lead.len()).iter().enumerate() {
        let lead = if i == 0 { lead } else { &" ".repeat(lead.len()) };
        writeln!(out, "{lead}{line}")?;
    }
    Ok(())
}

/// Whether a word, without punctuation, is a unit of a number before it.
fn is_unit(word: &str) -> bool {
    let word = word.trim_end_matches([',', '.', ';', ':', ')']);
    matches!(word, "s" | "%" | "bit/s" | "kbit/s" | "Mbit/s")
}

#[cfg(test)]
mod tests {
    use super::{name, name_width, paragraph};

    #[test]
    fn a_number_and_its_unit_stay_on_one_line() {
        let text = format!("{} 528 s, and it loses 3 %.", "x".repeat(75));
        let mut out = Vec::new();
        paragraph(&mut out, "", &text).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.ends_with("x\n528 s, and it loses 3 %.\n"), "{text}");
    }

    #[test]
    fn a_name_too_long_for_its_column_has_a_line_of_its_own() {
        let names = ["fasor".to_owned(), "rcoap:ipi-min=400ms".to_owned()];
        let width = name_width(names.iter(), 8, 15);
        assert_eq!(width, 8);
        assert_eq!(name(&names[0], width), "fasor   ");
        assert_eq!(name(&names[1], width), "rcoap:ipi-min=400ms\n        ");
    }
}
