//! Tables of runs whose traces nobody keeps: their digests, and the rows of many runs in one file.

use crate::schema::Row;
use crate::writer::{TableWriter, TraceError, file_name};
use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use arrow::ipc::writer::StreamWriter;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// The tables of one run, in memory.
#[derive(Debug, Default)]
pub struct Collected {
    /// Size in bytes and SHA-256 of the file that each table would be, by the file's name.
    pub files: BTreeMap<String, String>,
    rows: BTreeMap<&'static str, Vec<RecordBatch>>,
}

impl Collected {
    /// Takes a table. Of those in `wanted` it keeps the rows, of others only the digest.
    pub fn save<R: Row>(
        &mut self,
        wanted: &[String],
        rows: impl IntoIterator<Item = R>,
    ) -> Result<(), TraceError> {
        let name = R::TABLE.name;
        let mut table = TableWriter::<R, Digested>::new(Digested::default(), file_name::<R>().into());
        if wanted.iter().any(|each| each == name) {
            table = table.keeping();
        }
        rows.into_iter().try_for_each(|row| table.push(row))?;
        let (digested, written) = table.close()?;
        self.files.insert(file_name::<R>(), digested.digest());
        if !written.is_empty() {
            self.rows.insert(name, written);
        }
        Ok(())
    }
}

/// The size and SHA-256 of what is written to it.
#[derive(Default)]
struct Digested {
    size: u64,
    sha256: Sha256,
}

impl Write for Digested {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.size += bytes.len() as u64;
        self.sha256.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Digested {
    fn digest(self) -> String {
        format!("{} {:x}", self.size, self.sha256.finalize())
    }
}

/// The tables of many runs in a folder, each as one Arrow stream `TABLE.arrows`, where the rows of a run are
/// together.
pub struct Streams {
    folder: PathBuf,
    wanted: Vec<String>,
    tables: BTreeMap<&'static str, Stream>,
}

/// Where the rows of a run are in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Rows {
    /// Number of the first one.
    pub first: usize,
    /// How many there are.
    pub number: usize,
}

struct Stream {
    path: PathBuf,
    writer: StreamWriter<BufWriter<File>>,
    rows: usize,
}

impl Streams {
    /// Streams of the tables `wanted` in `folder`.
    pub fn new(folder: &Path, wanted: &[String]) -> Streams {
        Streams { folder: folder.to_owned(), wanted: wanted.to_vec(), tables: BTreeMap::new() }
    }

    /// The tables that they hold.
    pub fn wanted(&self) -> &[String] {
        &self.wanted
    }

    /// Appends the rows of a run, which can be read when the call returns. After an error, no rows of later
    /// runs can.
    pub fn append(&mut self, run: &Collected) -> Result<BTreeMap<&'static str, Rows>, TraceError> {
        let mut found = BTreeMap::new();
        for (name, batches) in &run.rows {
            if !self.tables.contains_key(name) {
                let path = self.folder.join(format!("{name}.arrows"));
                self.tables.insert(name, Stream::create(path, &batches[0].schema())?);
            }
            let table = self.tables.get_mut(name).expect("it is there now");
            found.insert(*name, table.append(batches)?);
        }
        Ok(found)
    }
}

impl Stream {
    fn create(path: PathBuf, schema: &Schema) -> Result<Stream, TraceError> {
        let file = File::create(&path).map_err(|source| TraceError::Io { path: path.clone(), source })?;
        match StreamWriter::try_new(BufWriter::new(file), schema) {
            Ok(writer) => Ok(Stream { path, writer, rows: 0 }),
            Err(source) => Err(TraceError::Arrow { path, source }),
        }
    }

    fn append(&mut self, batches: &[RecordBatch]) -> Result<Rows, TraceError> {
        let written =
            batches.iter().try_for_each(|batch| self.writer.write(batch)).and_then(|()| self.writer.flush());
        written.map_err(|source| TraceError::Arrow { path: self.path.clone(), source })?;
        let rows = Rows { first: self.rows, number: batches.iter().map(RecordBatch::num_rows).sum() };
        self.rows += rows.number;
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Chunk;
    use arrow::ipc::reader::StreamReader;

    fn run(times: std::ops::Range<i64>) -> impl Iterator<Item = Chunk> {
        times.map(|time| {
            crate::row!(Chunk { visit: 0, request: "r1", connection: 1, time: time, bytes: 1448 })
        })
    }

    #[test]
    fn a_collected_table_has_the_digest_of_its_file_and_its_rows_follow_those_of_earlier_runs() {
        let folder = std::env::temp_dir().join(format!("wirepaint-collected-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        TableWriter::save(&folder, run(0..3)).unwrap();
        let content = std::fs::read(folder.join("chunk.parquet")).unwrap();
        let wanted = ["chunk".to_owned()];
        let mut streams = Streams::new(&folder, &wanted);
        for (times, first) in [(0..3, 0), (3..3, 3), (3..8, 3)] {
            let (number, mut collected) = (times.clone().count(), Collected::default());
            collected.save(&wanted, run(times)).unwrap();
            let rows = streams.append(&collected).unwrap();
            assert_eq!(rows, BTreeMap::from([("chunk", Rows { first, number })]));
            let digest = format!("{} {:x}", content.len(), Sha256::digest(&content));
            assert_eq!(collected.files["chunk.parquet"] == digest, (first, number) == (0, 3));
        }
        let stream = StreamReader::try_new(File::open(folder.join("chunk.arrows")).unwrap(), None).unwrap();
        assert_eq!(stream.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 8);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn of_a_table_that_is_not_wanted_only_the_digest_is_collected() {
        let mut collected = Collected::default();
        collected.save(&["page".to_owned()], run(0..3)).unwrap();
        assert!(collected.files.contains_key("chunk.parquet"));
        assert!(collected.rows.is_empty());
    }
}
