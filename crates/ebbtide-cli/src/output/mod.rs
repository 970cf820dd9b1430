//! What commands print: tables for people, JSON for programs, progress for the patient.

mod background;
#[cfg(target_os = "linux")]
pub(crate) mod emulation;
mod flows;
pub(crate) mod json;
mod mesh;
pub(crate) mod progress;
pub(crate) mod table;
mod wifi;

/// Words in lines of at most `width` characters.
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
