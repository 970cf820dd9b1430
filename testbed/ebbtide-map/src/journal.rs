//! A file of computed results, one line each, with which a map can be continued.

use super::measures::Measured;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Mutex;

/// The file's name in the folder of results.
const NAME: &str = "networks.jsonl";

/// One line: the figures of a control in a network.
#[derive(Serialize, Deserialize)]
struct JournalLine {
    /// A hash of everything on which the figures depend.
    key: String,
    network: u32,
    cc: String,
    #[serde(flatten)]
    measured: Measured,
}

/// The lines that exist, and a file to which lines are appended.
pub(super) struct Journal {
    known: BTreeMap<String, Measured>,
    file: Option<Mutex<File>>,
}

impl Journal {
    /// A journal that keeps nothing.
    pub(super) const fn nowhere() -> Self {
        Self { known: BTreeMap::new(), file: None }
    }

    /// Reads the results in a folder and appends new ones to them. An incomplete last line is
    /// computed again.
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let path = folder.join(NAME);
        let mut file = OpenOptions::new().create(true).read(true).append(true).open(path)?;
        let mut known = BTreeMap::new();
        for line in BufReader::new(&file).lines() {
            if let Ok(line) = serde_json::from_str::<JournalLine>(&line?) {
                known.insert(line.key, line.measured);
            }
        }
        end_last_line(&mut file)?;
        Ok(Self { known, file: Some(Mutex::new(file)) })
    }

    pub(super) fn get(&self, key: &str) -> Option<Measured> {
        self.known.get(key).cloned()
    }

    pub(super) fn add(
        &self,
        key: String,
        network: u32,
        cc: &str,
        measured: Measured,
    ) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let line = JournalLine { key, network, cc: cc.to_owned(), measured };
        let mut text = serde_json::to_string(&line).map_err(io::Error::other)?;
        text.push('\n');
        let mut file = file.lock().map_err(|_| io::Error::other("another thread failed"))?;
        file.write_all(text.as_bytes())
    }
}

/// An incomplete line must not become the beginning of the next one.
fn end_last_line(file: &mut File) -> io::Result<()> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(());
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    if last == *b"\n" { Ok(()) } else { file.write_all(b"\n") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Measures;

    #[test]
    fn a_written_result_is_found_again_and_a_truncated_line_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let measures = Measures { asked: 3, delivered: 2, ..Measures::default() };
        let measures = Measured { all: measures, runs: vec![measures] };
        let journal = Journal::open(folder.path()).unwrap();
        journal.add("a".to_owned(), 0, "ebb", measures.clone()).unwrap();
        let path = folder.path().join(NAME);
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.push_str("{\"key\":\"b\",\"netw");
        std::fs::write(&path, text).unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        assert_eq!((journal.get("a"), journal.get("b")), (Some(measures.clone()), None));
        journal.add("c".to_owned(), 1, "ebb", measures.clone()).unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        assert_eq!((journal.get("a"), journal.get("c")), (Some(measures.clone()), Some(measures)));
    }
}
