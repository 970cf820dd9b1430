//! Text of a peer that is shown on a terminal.

/// Whether a character of a peer's text can be shown as it is. Control characters would control the terminal, and
/// invisible ones that format or reorder text (Unicode's bidirectional controls among them) would make it read as
/// something else: escape both, for example with [`char::escape_unicode`].
#[must_use]
pub fn is_harmless(c: char) -> bool {
    let formats = matches!(
        c,
        '\u{ad}'
            | '\u{61c}'
            | '\u{115f}' | '\u{1160}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e007f}'
    );
    !c.is_control() && !formats
}

#[cfg(test)]
mod tests {
    use super::is_harmless;

    #[test]
    fn text_in_any_script_is_shown_and_what_controls_or_reorders_it_is_not() {
        assert!("größer, 温度, שלום, नमस्ते, 🌡".chars().all(is_harmless));
        for c in [
            '\n',
            '\u{1b}',
            '\u{9b}',
            '\u{202e}',
            '\u{2066}',
            '\u{200f}',
            '\u{61c}',
            '\u{feff}',
            '\u{e0041}',
            // A filler that is no letter to see, and a mark of shorthand.
            '\u{3164}',
            '\u{1bca0}',
        ] {
            assert!(!is_harmless(c), "{c:?}");
        }
    }
}
