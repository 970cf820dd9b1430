//! Text for a terminal of 80 columns.

use std::io::{self, Write};

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
    use super::paragraph;

    #[test]
    fn a_number_and_its_unit_stay_on_one_line() {
        let text = format!("{} 528 s, and it loses 3 %.", "x".repeat(75));
        let mut out = Vec::new();
        paragraph(&mut out, "", &text).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.ends_with("x\n528 s, and it loses 3 %.\n"), "{text}");
    }
}
