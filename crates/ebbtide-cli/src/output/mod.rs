//! The output of commands: text tables, JSON, and progress.

mod classes;
pub(crate) mod curve;
#[cfg(target_os = "linux")]
pub(crate) mod emulation;
pub(crate) mod fit;
mod flows;
mod group;
pub(crate) mod map;
pub(crate) mod number;
pub(crate) mod progress;
mod requirements;
pub(crate) mod table;
pub(crate) mod until;

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

#[cfg(test)]
mod tests {
    use super::{name, name_width};

    #[test]
    fn a_name_too_long_for_its_column_has_a_line_of_its_own() {
        let names = ["fasor".to_owned(), "rcoap:ipi-min=400ms".to_owned()];
        let width = name_width(names.iter(), 8, 15);
        assert_eq!(width, 8);
        assert_eq!(name(&names[0], width), "fasor   ");
        assert_eq!(name(&names[1], width), "rcoap:ipi-min=400ms\n        ");
    }
}
