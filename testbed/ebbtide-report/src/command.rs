//! The command under a figure: those of its cells merged into one.

use ebbtide_sim::result::Cell;

/// One command that computes exactly these cells, or `fallback` (which computes them and
/// more) when their commands differ in anything but the control and the values of settings.
pub(super) fn for_cells(cells: &[&Cell], fallback: &str) -> String {
    merge(cells).unwrap_or_else(|| fallback.to_owned())
}

fn merge(cells: &[&Cell]) -> Option<String> {
    let rows: Vec<Vec<&str>> = cells.iter().map(|cell| arguments(&cell.command)).collect();
    let first = rows.first().filter(|row| !row.is_empty())?;
    if rows.iter().any(|row| row.len() != first.len()) {
        return None;
    }
    let mut merged = Vec::with_capacity(first.len());
    let mut combinations = 1usize;
    for index in 0..first.len() {
        let mut distinct: Vec<&str> = Vec::new();
        for row in &rows {
            let word = row.get(index)?;
            if !distinct.contains(word) {
                distinct.push(word);
            }
        }
        combinations = combinations.checked_mul(distinct.len())?;
        let before = index.checked_sub(1).and_then(|before| first.get(before)).copied();
        merged.push(join(&distinct, before)?);
    }
    // A list in a command means every combination; anything else would compute more.
    (combinations == cells.len()).then(|| merged.join(" "))
}

/// The arguments of a command; one in single quotes may contain blanks and keeps its quotes.
fn arguments(command: &str) -> Vec<&str> {
    let mut quoted = false;
    let split = command.split(|c: char| {
        quoted ^= c == '\'';
        c.is_whitespace() && !quoted
    });
    split.filter(|argument| !argument.is_empty()).collect()
}

/// Words of one place as one word: `fasor,cocoa` after `--cc`, `buffer=2500,14100` elsewhere.
fn join(distinct: &[&str], before: Option<&str>) -> Option<String> {
    if let [only] = distinct {
        return Some((*only).to_owned());
    }
    if before == Some("--cc") {
        return Some(distinct.join(","));
    }
    let mut values = Vec::with_capacity(distinct.len());
    let (key, _) = distinct.first()?.split_once('=')?;
    for word in distinct {
        let (other, value) = word.split_once('=')?;
        if other != key {
            return None;
        }
        values.push(value.trim_end_matches('\''));
    }
    let closing = if key.starts_with('\'') { "'" } else { "" };
    Some(format!("{key}={}{closing}", values.join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(command: &str) -> Cell {
        Cell { command: command.to_owned(), ..Cell::default() }
    }

    #[test]
    fn commands_that_differ_in_lists_become_one() {
        let cells: Vec<Cell> = [("1", "fasor"), ("1", "cocoa"), ("9", "fasor"), ("9", "cocoa")]
            .iter()
            .map(|(buffer, cc)| cell(&format!("run x --set buffer={buffer} --cc {cc}")))
            .collect();
        let cells: Vec<&Cell> = cells.iter().collect();
        assert_eq!(for_cells(&cells, "all"), "run x --set buffer=1,9 --cc fasor,cocoa");
    }

    #[test]
    fn values_with_blanks_are_merged_whole() {
        let cells = [cell("run --set 'up.rate=60 kbit/s'"), cell("run --set 'up.rate=1 Mbit/s'")];
        let cells: Vec<&Cell> = cells.iter().collect();
        assert_eq!(for_cells(&cells, "all"), "run --set 'up.rate=60 kbit/s,1 Mbit/s'");
    }

    #[test]
    fn a_command_that_would_compute_more_is_not_made_up() {
        let cells = [cell("run x --set b=1 --cc fasor"), cell("run x --set b=9 --cc cocoa")];
        let cells: Vec<&Cell> = cells.iter().collect();
        assert_eq!(for_cells(&cells, "all"), "all");
        assert_eq!(for_cells(&[], "all"), "all");
    }
}
