//! The tables of a scenario's file, by dotted keys.

use super::nearest::did_you_mean;
use super::settings::name_of;
use super::validate::ScenarioFile;
use toml::{Table, Value};

/// Reads a scenario.
pub(super) fn read(table: &Table) -> Result<ScenarioFile, toml::de::Error> {
    Value::Table(table.clone()).try_into()
}

/// Sets a dotted key, in which entries of arrays of tables stand by their names, and creates tables if necessary.
pub(super) fn set(table: &mut Table, dotted: &str, value: Value) -> Result<(), String> {
    let (first, rest) = match dotted.split_once('.') {
        None => {
            table.insert(dotted.to_owned(), value);
            return Ok(());
        }
        Some(parts) => parts,
    };
    let entry = table.entry(first.to_owned()).or_insert_with(|| Value::Table(Table::new()));
    match entry {
        Value::Table(inner) => set(inner, rest, value),
        Value::Array(list) if list.iter().all(Value::is_table) => {
            let (wanted, rest) = rest.split_once('.').unwrap_or((rest, ""));
            let names: Vec<String> = list.iter().filter_map(name_of).map(str::to_owned).collect();
            let found = list.iter_mut().find(|entry| name_of(entry) == Some(wanted));
            match found {
                Some(Value::Table(inner)) if !rest.is_empty() => set(inner, rest, value),
                Some(_) => Err(format!("takes a key of it, such as {first}.{wanted}.KEY=VALUE")),
                None => Err(format!(
                    "there is no [[{first}]] with the name '{wanted}'; there are {}{}",
                    names.join(", "),
                    did_you_mean(wanted, names.iter().map(String::as_str))
                )),
            }
        }
        _ => Err(format!("'{first}' is a value, not a table: it has no '{rest}'")),
    }
}

/// Why no file with these tables can have a dotted key, in the parser's words; `None` if one can.
pub(super) fn why_unknown(table: &Table, dotted: &str) -> Option<String> {
    let (first, rest) = dotted.split_once('.').unwrap_or((dotted, ""));
    let mut with = table.clone();
    // Any value tells whether the key is known.
    if let Err(why) = set(&mut with, dotted, Value::Boolean(true)) {
        return Some(why);
    }
    let error = read(&with).err()?.message().to_owned();
    let profile = rest.split('.').next().filter(|name| first == "errors" && !name.is_empty());
    let is_new = |name: &&str| table.get(first).and_then(|errors| errors.get(*name)).is_none();
    if let Some(name) = profile.filter(is_new) {
        return Some(format!("there is no [errors.{name}]"));
    }
    if !rest.is_empty() && error.starts_with("invalid type: map, expected a sequence") {
        return Some(format!("there is no [[{first}]]"));
    }
    (error.starts_with("unknown field") && !other_kind_has(table, dotted)).then_some(error)
}

/// Whether the key is one of its table with another `kind`.
fn other_kind_has(table: &Table, dotted: &str) -> bool {
    let Some((parent, key)) = dotted.rsplit_once('.') else { return false };
    let error = |own: Table| {
        let mut with = table.clone();
        set(&mut with, parent, Value::Table(own)).ok()?;
        Some(read(&with).err()?.message().to_owned())
    };
    let kind = |kind: &str| Table::from_iter([("kind".to_owned(), Value::String(kind.to_owned()))]);
    let Some(kinds) = error(kind("")).filter(|error| error.starts_with("unknown variant ``"))
    else {
        return false;
    };
    // "unknown variant ``, expected one of `codel`, `red`"
    kinds.split('`').skip(3).step_by(2).any(|name| {
        let mut own = kind(name);
        own.insert(key.to_owned(), Value::Boolean(true));
        error(own).is_none_or(|error| !error.starts_with("unknown field"))
    })
}

/// The line of the key at fault where a parser's message has the line of its table's header: tables with a `kind` are
/// read as a whole.
pub(super) fn key_at_fault(text: &str, header: usize, message: &str) -> Option<usize> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let dotted = lines.get(header - 1)?.strip_prefix('[')?.split(']').next()?;
    let table: Table = toml::from_str(text).ok()?;
    let key = match message.strip_prefix("unknown field `") {
        Some(named) => named.split('`').next()?.to_owned(),
        None if message.starts_with("invalid ") => {
            let entries = |array: &str| {
                let opening = format!("[[{array}]]");
                lines[..header].iter().filter(|line| line.starts_with(&opening)).count()
            };
            let names: Vec<String> =
                inner(&mut table.clone(), dotted, &entries)?.keys().cloned().collect();
            // The one without which there is another message.
            names.into_iter().filter(|name| name != "kind").find(|name| {
                let mut without = table.clone();
                inner(&mut without, dotted, &entries).map(|own| own.remove(name));
                read(&without).err().is_none_or(|error| error.message() != message)
            })?
        }
        None => return None,
    };
    let own = lines.iter().enumerate().skip(header).take_while(|(_, line)| !line.starts_with('['));
    let mut sets =
        own.filter(|(_, line)| line.split_once('=').is_some_and(|(name, _)| name.trim() == key));
    sets.next().map(|(place, _)| place + 1)
}

/// The table of a header; of an array of tables, the entry of this number, from 1.
fn inner<'t>(
    table: &'t mut Table,
    dotted: &str,
    entry: &dyn Fn(&str) -> usize,
) -> Option<&'t mut Table> {
    dotted.split('.').try_fold(table, |place, part| match place.get_mut(part)? {
        Value::Array(list) => list.get_mut(entry(part).checked_sub(1)?)?.as_table_mut(),
        own => own.as_table_mut(),
    })
}
